"""Promise: a forest read from `forest.bin` says what the program says, to the bit."""

import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest

from kindred import Absent, Forest


@pytest.mark.parametrize(
    ("outcome", "column"), [("class", "class"), ("number", "mean"), ("survival", "risk")]
)
def test_out_of_bag_predictions_are_the_programs(runs, mixed, outcome, column):
    site = runs["forest", outcome].sites["patients"]
    assert 0.3 < site.unseen.mean() < 0.45
    found = site.forest.predict(mixed, site.unseen)
    assert np.array_equal(found, site.patients[column].to_numpy())


def test_proximities_are_the_programs(runs, mixed):
    for outcome in ["class", "survival"]:
        site = runs["forest", outcome].sites["patients"]
        assert np.array_equal(site.forest.proximity(mixed), site.proximity)
    site = runs["forest", "number"].sites["patients"]
    found = site.forest.proximity(mixed, unseen=site.unseen)
    assert np.array_equal(found, site.proximity, equal_nan=True)


def test_gap_is_the_programs(runs, mixed):
    site = runs["forest-gap", "class"].sites["patients"]
    assert np.array_equal(site.in_bag == 0, site.unseen)
    found = site.forest.gap(mixed, site.in_bag)
    assert np.array_equal(found, site.proximity, equal_nan=True)
    assert np.allclose(found.sum(axis=1), 1.0)
    voted = found @ pd.get_dummies(mixed["ill"]).to_numpy(dtype=float)
    assert np.abs(voted - site.forest.predict_proba(mixed, site.unseen)).max() < 1e-12
    new = site.forest.gap(mixed, site.in_bag, new=mixed[:4])
    assert np.allclose(new @ pd.get_dummies(mixed["ill"]), site.forest.predict_proba(mixed[:4]))
    with pytest.raises(Absent, match="no in_bag.npy"):
        _ = runs["forest", "class"].sites["patients"].in_bag


@pytest.mark.parametrize("outcome", ["class", "number", "survival"])
def test_json_read_again_is_the_same_forest(runs, mixed, outcome):
    site = runs["forest", outcome].sites["patients"]
    again = Forest.from_json(site.forest.to_json(), site.job)
    assert np.array_equal(again.apply(mixed), site.forest.apply(mixed))
    assert np.array_equal(again.predict(mixed, site.unseen), site.forest.predict(mixed, site.unseen))
    for one, other in zip(again.trees, site.forest.trees, strict=True):
        assert np.array_equal(one.nodes["feature"], other.nodes["feature"])
        assert np.array_equal(one.patients, other.patients)


def test_json_predicts_as_its_schema_says(runs, mixed):
    """A reader of its own, that knows of the JSON alone."""
    forest = runs["forest", "number"].forest
    said = json.loads(forest.to_json())
    table = forest.job.table(mixed)

    def value(nodes, row):
        node = nodes[0]
        while "value" not in node:
            one, levels = row[node["feature"]], said["features"][node["feature"]]["levels"]
            if np.isnan(one):
                left = node["missing_left"]
            elif levels:
                left = levels[int(one)] in node["levels_left"]
            else:
                left = node["at_most"] is None or one <= node["at_most"]
            node = nodes[node["left"] if left else node["right"]]
        return node["value"][0]

    found = [sum(value(nodes, row) for nodes in said["trees"]) / len(said["trees"]) for row in table]
    assert np.array_equal(found, forest.predict(mixed))


def test_other_json_is_refused(runs):
    forest = runs["forest", "number"].forest
    said = json.loads(forest.to_json())
    inner = next(at for at, node in enumerate(said["trees"][0]) if "feature" in node)
    loop = json.loads(forest.to_json())
    loop["trees"][0][inner] |= {"left": inner, "right": inner + 1}
    for changed, wanted in [
        ({**said, "version": 2}, "of version 2, wanted kindred-forest of version 1"),
        ({**said, "features": said["features"][1:]}, "other features than the job"),
        (loop, "not that of a forest"),
    ]:
        with pytest.raises(ValueError, match=wanted):
            Forest.from_json(json.dumps(changed), forest.job)


def test_the_common_forest_of_four_hospitals_is_one(federated, patients):
    run = federated["forest"]
    frame = patients["survival"]["north"]
    risks = [site.forest.predict(frame) for site in run.sites.values()]
    assert all(np.array_equal(one, run.forest.predict(frame)) for one in risks)
    site = run.sites["north"]
    assert np.array_equal(site.forest.proximity(frame, unseen=site.unseen), site.proximity, equal_nan=True)


def test_two_tables_are_compared_by_shared_terminal_nodes(runs, mixed):
    forest = runs["forest", "class"].forest
    nodes = forest.apply(mixed)
    assert nodes.shape == (300, 70)
    wanted = (nodes[:4, None, :] == nodes[None, 4:9, :]).sum(axis=2) / 70
    assert np.array_equal(forest.proximity(mixed[:4], mixed[4:9]), wanted)


def test_terminal_nodes_hold_the_patients_that_are_counted_there(runs, mixed):
    site = runs["forest", "number"].sites["patients"]
    nodes = site.forest.apply(mixed)
    for at, tree in enumerate(site.forest.trees):
        held = np.bincount(nodes[~site.unseen[:, at], at], minlength=len(tree.nodes))
        terminal = tree.nodes["feature"] == 2**32 - 1
        assert np.array_equal(held[terminal], tree.patients[terminal])


def test_survival_is_a_rising_hazard_whose_sum_is_the_risk(runs, mixed):
    forest = runs["forest", "survival"].forest
    hazard = forest.predict_cumulative_hazard(mixed)
    assert (np.diff(hazard.to_numpy(), axis=1) >= 0).all()
    assert np.allclose(hazard.sum(axis=1), forest.predict(mixed), rtol=1e-12)
    with pytest.raises(ValueError, match="is survival, wanted classes"):
        forest.predict_proba(mixed)


def test_a_patient_that_every_tree_has_seen_has_no_prediction(runs, mixed):
    nobody = np.zeros((2, 70), dtype=bool)
    assert runs["forest", "class"].forest.predict(mixed[:2], nobody).tolist() == ["", ""]
    assert np.isnan(runs["forest", "number"].forest.predict(mixed[:2], nobody)).all()


@pytest.mark.parametrize("outcome", ["class", "number"])
def test_onnx_runtime_predicts_the_same(runs, mixed, outcome):
    forest = runs["forest", outcome].forest
    model = forest.to_onnx()
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {"patients": forest.job.table(mixed)})[0]
    wanted = forest.predict_proba(mixed) if outcome == "class" else forest.predict(mixed)[:, None]
    assert np.abs(found - wanted).max() < 1e-12


def test_a_forest_of_survival_is_no_onnx_model(runs):
    with pytest.raises(ValueError, match="wanted numeric or classes"):
        runs["forest", "survival"].forest.to_onnx()


def test_a_node_that_leads_back_is_refused(runs):
    site = runs["forest", "number"].sites["patients"]
    content = bytearray((site.folder / "forest.bin").read_bytes())
    root = content.find(site.forest.trees[0].nodes[:1].tobytes())
    for at, changed in [(root + 4, 0), (root + 4, 2**31), (root, 6)]:
        other = content[:at] + changed.to_bytes(4, "little") + content[at + 4 :]
        with pytest.raises(ValueError, match="not that of a forest"):
            Forest.from_bytes(bytes(other), site.job)


def test_other_bytes_are_refused(runs):
    forest = runs["forest", "number"].sites["patients"]
    content = (forest.folder / "forest.bin").read_bytes()
    for changed, wanted in [
        (b"X" + content[1:], "do not begin with KDFOREST"),
        (content[:8] + b"\x02\x00" + content[10:], "format version 2, wanted 1"),
        (content[:-1], "end within the forest"),
        (content + b"\x00", "1 bytes follow the forest"),
        (content.replace(b"ward", b"warp"), "other features than the job"),
    ]:
        with pytest.raises(ValueError, match=wanted):
            Forest.from_bytes(changed, forest.job)
