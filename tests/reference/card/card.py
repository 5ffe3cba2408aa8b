"""Table 1 of made-up patients, and of the four hospitals of the UCI Heart Disease data, from the pooled rows by pandas.

    python card.py [FOLDER of cleveland.csv, hungarian.csv, switzerland.csv, va.csv]

Writes patients.csv (made-up patients of four hospitals, fixed seed) and expected.json. Standardised mean differences are those of the
package tableone, of levels as Yang and Dalton (2012) define them.
"""
import json
import pathlib
import sys
from importlib.metadata import version

import numpy as np
import pandas as pd
from tableone.statistics import Statistics

HERE = pathlib.Path(__file__).parent
HORIZON = 1000.0
STATISTICS = Statistics()


def made_up():
    draw = np.random.default_rng(20_261_123)
    rows = []
    for hospital, patients in [("north", 160), ("south", 130), ("east", 90), ("west", 75)]:
        for number in range(patients):
            disease = draw.random() < 0.4
            lacks = draw.choice(["", "disease", "died", "score", "disease died score"], p=[0.65, 0.1, 0.1, 0.1, 0.05])
            known = lambda name, value: "" if name in lacks else value
            age = round(draw.normal(63 if disease else 57, 9), 1)
            rows.append({
                "hospital": hospital,
                "patient": f"{hospital}-{number + 1:03}",
                "age": age,
                "cholesterol": "" if draw.random() < 0.08 else round(draw.normal(245, 50)),
                "sex": "1" if draw.random() < 0.6 else "0",
                "smoking": draw.choice(["never", "former", "current", ""], p=[0.5, 0.27, 0.2, 0.03]),
                "stage": draw.choice(["I", "II", "III", "IV"], p=[0.5, 0.3, 0.19, 0.01]),
                "disease": known("disease", str(int(disease))),
                "days": round(draw.exponential(1500) + 1, 1),
                "died": known("died", str(int(draw.random() < 0.6))),
                "score": known("score", round(draw.normal(20, 6), 2)),
            })
    pd.DataFrame(rows).to_csv(HERE / "patients.csv", index=False)
    data = pd.read_csv(HERE / "patients.csv", dtype=str, keep_default_na=False)
    died = data["died"].map({"1": 1, "0": 0})
    days = pd.to_numeric(data["days"])
    event = (died == 1) & (days <= HORIZON)
    outcomes = {
        "disease": [("without disease", data["disease"] == "0"), ("with disease", data["disease"] == "1")],
        "death": [("died", died.notna() & event), ("alive when last seen", died.notna() & ~event)],
        "score": [("with a value", data["score"] != "")],
    }
    known = (data["disease"] != "") | died.notna() | (data["score"] != "")
    numbers = {name: pd.to_numeric(data[name].replace("", np.nan)) for name in ["age", "cholesterol"]}
    levels = {
        "sex": (data["sex"], ["0", "1"]),
        "smoking": (data["smoking"].replace("", np.nan), ["never", "former", "current"]),
        "stage": (data["stage"], ["I", "II", "III", "IV"]),
    }
    table = described(known, outcomes, numbers, levels)
    score = pd.to_numeric(data["score"].replace("", np.nan))
    table["outcomes"] = {
        "death": {"time_at_risk": float(days[died.notna()].clip(upper=HORIZON).sum())},
        "score": {"mean": float(score.mean()), "standard_deviation": float(score.std(ddof=1))},
    }
    return table


def hospitals(folder):
    files = ["cleveland", "hungarian", "switzerland", "va"]
    data = pd.concat([pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False) for name in files], ignore_index=True)
    number = lambda name: pd.to_numeric(data[name].replace("", np.nan))
    zero = lambda name: number(name).replace(0.0, np.nan)
    disease = number("num") > 0
    outcomes = {"disease": [("without the outcome", ~disease), ("with the outcome", disease)]}
    numbers = {"age": number("age"), "trestbps": zero("trestbps"), "chol": zero("chol"), "thalach": number("thalach"),
               "oldpeak": number("oldpeak")}
    text = lambda name: data[name].replace("", np.nan)
    levels = {"sex": (text("sex"), ["0", "1"]), "cp": (text("cp"), ["1", "2", "3", "4"]), "fbs": (text("fbs"), ["0", "1"]),
              "restecg": (text("restecg"), ["0", "1", "2"]), "exang": (text("exang"), ["0", "1"]),
              "slope": (text("slope"), ["1", "2", "3"]), "thal": (text("thal"), ["3", "6", "7"])}
    return described(pd.Series(True, index=data.index), outcomes, numbers, levels)


def described(everyone, outcomes, numbers, levels):
    groups = [(None, "all patients", everyone)]
    groups += [(outcome, name, mask) for outcome, own in outcomes.items() for name, mask in own]
    return {
        "groups": [{
            "outcome": outcome, "group": name, "patients": int(mask.sum()),
            "numbers": {key: {"present": int(values[mask].notna().sum()), "missing": int(values[mask].isna().sum()),
                              "mean": float(values[mask].mean()), "standard_deviation": float(values[mask].std(ddof=1))}
                        for key, values in numbers.items()},
            "levels": {key: {"counts": [int((values[mask] == level).sum()) for level in known],
                             "missing": int(values[mask].isna().sum())}
                       for key, (values, known) in levels.items()},
        } for outcome, name, mask in groups],
        "differences": {outcome: differences(own, numbers, levels) for outcome, own in outcomes.items() if len(own) == 2},
    }


def differences(groups, numbers, levels):
    (_, one), (_, other) = groups
    found = {}
    for key, values in numbers.items():
        one_values, other_values = values[one].dropna(), values[other].dropna()
        smd, _ = STATISTICS._cont_smd(mean1=one_values.mean(), mean2=other_values.mean(), sd1=one_values.std(ddof=1),
                                      sd2=other_values.std(ddof=1), n1=len(one_values), n2=len(other_values))
        found[key] = abs(float(smd))
    for key, (values, known) in levels.items():
        shares = lambda mask: [float((values[mask] == level).sum() / values[mask].notna().sum()) for level in known]
        if min(min(shares(one)), min(shares(other))) > 0:
            smd, _ = STATISTICS._cat_smd(prop1=shares(one), prop2=shares(other), n1=int(one.sum()), n2=int(other.sum()))
            found[key] = float(smd)
    return found


def main():
    expected = {
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in ["pandas", "numpy", "tableone"]}},
        "made_up": made_up(),
    }
    if len(sys.argv) > 1:
        expected["heart_disease"] = hospitals(pathlib.Path(sys.argv[1]))
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
