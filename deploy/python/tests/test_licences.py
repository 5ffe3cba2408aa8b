"""Promise: everybody may use what the package and its tests need; deny.toml lists the permitted licences."""

import re
import tomllib
from importlib.metadata import Distribution, distributions

import pytest
from conftest import ROOT

# Python's own, and Pillow's: permissive, and of no crate.
OF_PYTHON = {"PSF-2.0", "MIT-CMU"}

# What packages call a licence that they do not name as SPDX does.
SPELT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause OR Apache-2.0": "BSD-3-Clause OR Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}


def allowed() -> set[str]:
    return OF_PYTHON | set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])


def expression(package: Distribution) -> str:
    """The licence as SPDX writes it, of the first place in which the package names one."""
    said = package.metadata
    classified = [one for one in said.get_all("Classifier") or [] if one.startswith("License :: ")]
    classes = [one.split(" :: ")[-1] for one in classified]
    places = [said.get("License-Expression"), *classes, said.get("License")]
    named = next((one for one in places if one), "no licence")
    return SPELT.get(named, named)


def permits(text: str, permitted: set[str]) -> bool:
    """Whether the expression can be met by permitted licences; none that is in use has parentheses."""
    every = [re.split(r" AND ", one) for one in text.split(" OR ")]
    return any(set(one) <= permitted for one in every)


def test_every_installed_package_has_a_permitted_licence():
    found = {one.metadata["Name"]: expression(one) for one in distributions()}
    assert len(found) > 60
    assert found["kindred"] == "Apache-2.0"
    assert {name: text for name, text in found.items() if not permits(text, allowed())} == {}


@pytest.mark.parametrize(
    ("text", "is_permitted"),
    [
        ("MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("BSD-3-Clause AND GPL-3.0-only", False),
        ("MPL-2.0", False),
        ("no licence", False),
    ],
)
def test_an_expression_is_met_by_permitted_licences_alone(text, is_permitted):
    assert permits(text, allowed()) == is_permitted
