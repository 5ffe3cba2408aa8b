//! Promise: a job is read whole or refused with all its problems.

use protocol::job::Job;
use protocol::name::SiteName;

const JOB: &str = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n\
    [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
    [[features]]\nname = \"x\"\nkind = \"numeric\"\n[unpsl]\n";

fn problems(job: &str) -> String {
    Job::parse(job).map_or_else(|errors| errors.to_string(), |_| String::new())
}

#[test]
fn a_whole_job_is_read() {
    assert_eq!(problems(JOB), "");
}

#[test]
fn a_misspelt_kind_is_reported_alone_and_not_with_the_keys_that_it_would_have_had() {
    let misspelt = JOB.replace("kind = \"binary\"", "kind = \"binry\"");
    let found = problems(&misspelt);
    assert!(found.contains("did you mean \"binary\"?"), "{found}");
    assert!(!found.contains("positive"), "{found}");
    let feature = "kind = \"binry\"\npositive = \"1\"\n[unpsl]";
    let found = problems(&JOB.replace("kind = \"numeric\"\n[unpsl]", feature));
    assert!(found.contains("did you mean \"binary\"?"), "{found}");
    assert!(!found.contains("positive"), "{found}");
}

#[test]
fn a_job_leaves_nobody_out_for_want_of_a_value_and_has_two_sites_at_least() {
    let of = |impute: &str| {
        let feature = format!("kind = \"numeric\"\nimpute = \"{impute}\"\n[unpsl]");
        problems(&JOB.replace("kind = \"numeric\"\n[unpsl]", &feature))
    };
    assert_eq!(of("indicator"), "");
    let wanted = "found \"leave out\", wanted \"mean\", \"median\" or \"indicator\"";
    assert!(of("leave out").contains(wanted), "{}", of("leave out"));
    assert!(of("mode").contains("wanted one of"), "{}", of("mode"));
    let one = JOB.replace("\"north\", \"south\"", "\"north\"");
    assert!(
        problems(&one).contains("found 1 sites, wanted 2 to 256"),
        "{}",
        problems(&one)
    );
    assert!(
        Job::parse_for_one(&one)
            .unwrap()
            .alone(SiteName::new("own").unwrap())
            .is_alone()
    );
    assert!(!Job::parse(JOB).unwrap().is_alone());
    let own = JOB.replace(
        "[outcome]",
        "[aggregation]\ncontributions = \"own\"\n[outcome]",
    );
    assert!(
        problems(&own).contains("contributions"),
        "{}",
        problems(&own)
    );
}

#[test]
fn a_baseline_has_keys_of_its_own() {
    let survival = "kind = \"survival\"\nevent = \"e\"\nhorizon = 900";
    let of = |settings: &str| {
        let job = JOB.replace("kind = \"binary\"\npositive = [\"1\"]", survival);
        let regression = job.replace("unpsl", "regression");
        problems(&format!("{regression}{settings}\n"))
    };
    assert_eq!(of("ties = \"breslow\""), "");
    assert_eq!(of("baseline = \"common\"\ncells = 16"), "");
    for (settings, wanted) in [
        (
            "baseline = \"common\"\ncells = 17",
            "wanted a whole number from 1 to 16",
        ),
        (
            "baseline = \"common\"\ncells = 12",
            "found 12, wanted 1, 2, 4, 8 or 16",
        ),
        (
            "baseline = \"common\"\nties = \"efron\"",
            "baseline = \"hospital\"",
        ),
        ("cells = 4", "baseline = \"common\""),
        ("baseline = \"site\"", "wanted one of"),
    ] {
        assert!(
            of(settings).contains(wanted),
            "{settings}: {}",
            of(settings)
        );
    }
}

#[test]
fn times_by_which_a_risk_is_wanted_rise_and_end_at_the_horizon() {
    let of = |horizons: &str| {
        let survival = format!("kind = \"survival\"\nevent = \"e\"\nhorizon = 900\n{horizons}");
        let job = JOB.replace("kind = \"binary\"\npositive = [\"1\"]", &survival);
        job.replace("unpsl", "regression")
    };
    let job = Job::parse(&of("horizons = [365, 900]")).unwrap();
    assert_eq!(job.cohort.outcome.kind.horizons(), [365.0, 900.0]);
    for wrong in ["[365, 901]", "[365, 365]", "[0, 365]", "[1, 2, 3, 4, 5, 6]"] {
        let text = problems(&of(&format!("horizons = {wrong}")));
        assert!(text.contains("rising times above 0"), "{wrong}: {text}");
    }
}

#[test]
fn unpsl_refuses_an_outcome_without_classes() {
    for kind in ["kind = \"numeric\"", "kind = \"survival\"\nevent = \"e\""] {
        let job = JOB.replace("kind = \"binary\"\npositive = [\"1\"]", kind);
        let wanted = "wanted an outcome of kind \"binary\" or \"categorical\"";
        assert!(problems(&job).contains(wanted), "{}", problems(&job));
    }
}

#[test]
fn every_problem_of_a_job_comes_at_once() {
    let job = JOB
        .replace("\"south\"", "\"north\"")
        .replace("name = \"x\"", "name = \"y\"")
        .replace(
            "[unpsl]",
            "[unpsl]\nlambda_sparsity = -1\nrank = 0\nlamda = 1",
        );
    let text = problems(&job);
    for wanted in [
        "\"north\" twice",
        "a feature that is not the outcome",
        "found -1, wanted a number of 0 or more",
        "found 0, wanted a whole number from 1",
        "found an unknown key",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
}

#[test]
fn a_rank_has_no_more_than_the_rows_of_the_features() {
    let feature =
        "kind = \"categorical\"\nlevels = [\"a\", \"b\", \"c\"]\nimpute = \"indicator\"\n";
    let more = |name: &str| format!("[[features]]\nname = \"{name}\"\n{feature}");
    let with = |keys: &str| {
        let keys = format!("{}[unpsl]\n{keys}", more("more"));
        problems(&JOB.replace("[unpsl]", &keys))
    };
    for keys in ["rank = 5", "rank = [2, 5]", ""] {
        assert_eq!(with(keys), "", "{keys}");
    }
    for keys in ["rank = 6", "rank = [6, 2]"] {
        let wanted = "found rank = 6, wanted at most 5, the rows";
        assert!(with(keys).contains(wanted), "{}", with(keys));
    }
}

#[test]
fn a_job_names_a_form_or_both_to_choose_from() {
    let with = |keys: &str| JOB.replace("[unpsl]", &format!("[unpsl]\n{keys}"));
    for keys in [
        "form = \"distance\"",
        "form = [\"distance\"]",
        "form = [\"inner_product\", \"distance\"]",
    ] {
        assert_eq!(problems(&with(keys)), "", "{keys}");
    }
    for keys in [
        "form = []",
        "form = \"cosine\"",
        "form = [\"distance\", \"distance\"]",
        "form = [\"inner_product\", \"distance\", \"inner_product\"]",
    ] {
        let text = problems(&with(keys));
        let wanted = "wanted \"inner_product\", \"distance\", or both in a list";
        assert!(
            text.contains("unpsl.form: found") && text.contains(wanted),
            "{keys}: {text}"
        );
    }
    let number = problems(&with("form = 3"));
    assert!(number.contains("unpsl.form"), "{number}");
}

#[test]
fn a_job_names_the_folds_of_its_validation_or_none_and_of_a_choice_they_are_the_same() {
    let with = |keys: &str| JOB.replace("[unpsl]", &format!("[unpsl]\n{keys}"));
    for keys in [
        "validation = 2",
        "validation = 20",
        "validation = \"none\"",
        "validation = 3\nfolds = 3\nneighbours = [1, 5]",
        "validation = \"none\"\nneighbours = [1, 5]",
        // Without a choice there are no other folds.
        "validation = 3\nfolds = 4",
    ] {
        assert_eq!(problems(&with(keys)), "", "{keys}");
    }
    for (keys, wanted) in [
        ("validation = 1", "unpsl.validation: found 1, wanted"),
        ("validation = 21", "unpsl.validation: found 21, wanted"),
        (
            "validation = \"all\"",
            "unpsl.validation: found \"all\", wanted",
        ),
        ("validation = [5]", "unpsl.validation: found"),
        (
            "validation = 3\nneighbours = [1, 5]",
            "unpsl.validation: found 3, wanted 5, the `folds` of the choice",
        ),
    ] {
        let text = problems(&with(keys));
        assert!(text.contains(wanted), "{keys}: {text}");
    }
}

const FOREST: &str = "name = \"a\"\nmethod = \"forest\"\nsites = [\"north\", \"south\"]\n\
    [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
    [[features]]\nname = \"x\"\nkind = \"numeric\"\n[forest]\n";

#[test]
fn forests_take_every_outcome() {
    for kind in [
        "kind = \"binary\"\npositive = [\"1\"]",
        "kind = \"categorical\"\nlevels = [\"a\", \"b\"]",
        "kind = \"numeric\"",
        "kind = \"survival\"\nevent = \"e\"",
    ] {
        let job = FOREST.replace("kind = \"binary\"\npositive = [\"1\"]", kind);
        assert_eq!(problems(&job), "");
    }
}

#[test]
fn what_a_forest_cannot_be_is_refused_with_its_line() {
    for (keys, line, wanted) in [
        (
            "trees = 0",
            12,
            "forest.trees: found 0, wanted a whole number from 1",
        ),
        ("trees = 10001", 12, "found 10001"),
        (
            "features_per_split = 2",
            12,
            "forest.features_per_split: found 2, wanted a whole number from 1 to 1",
        ),
        ("node_size = 0", 12, "forest.node_size: found 0"),
        (
            "node_size = \"small\"",
            12,
            "forest.node_size: found \"small\", wanted one of \"auto\"",
        ),
        (
            "node_size = \"auto\"\nscope = \"federated\"",
            12,
            "forest.node_size: found \"auto\" of a federated forest, wanted a number",
        ),
        ("neighbours = 0", 12, "forest.neighbours: found 0"),
        ("proximity = \"gaps\"", 12, "did you mean \"gap\"?"),
        (
            "scope = \"federated\"\ntrees = 1",
            13,
            "forest.trees: found 1, wanted a whole number from 2",
        ),
        (
            "scope = \"federated\"",
            2,
            "\"x\" without a range, wanted range = [lowest, highest]",
        ),
        ("rank = 8", 12, "found an unknown key"),
    ] {
        let text = problems(&format!("{FOREST}{keys}\n"));
        let told = text
            .lines()
            .any(|told| told.contains(wanted) && told.contains(&format!("line {line}")));
        assert!(told, "{wanted} in line {line} is not in\n{text}");
    }
    let survival = FOREST
        .replace(
            "kind = \"binary\"\npositive = [\"1\"]",
            "kind = \"survival\"\nevent = \"e\"",
        )
        .replace(
            "kind = \"numeric\"\n",
            "kind = \"numeric\"\nrange = [0, 1]\n",
        );
    let text = problems(&format!("{survival}scope = \"federated\"\n"));
    assert!(text.contains("an outcome without a horizon"), "{text}");
}

const COMPARE: &str = "name = \"a\"\nmethod = \"compare\"\nsites = [\"north\", \"south\", \"east\"]\n\
    [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
    [[features]]\nname = \"x\"\nkind = \"numeric\"\n[compare]\n";

#[test]
fn a_comparison_names_families_that_can_be_had_and_no_key_that_means_nothing_there() {
    assert_eq!(problems(COMPARE), "");
    let number = COMPARE.replace(
        "kind = \"binary\"\npositive = [\"1\"]",
        "kind = \"numeric\"",
    );
    assert_eq!(problems(&number), "");
    let classes = COMPARE.replace(
        "kind = \"binary\"\npositive = [\"1\"]",
        "kind = \"categorical\"\nlevels = [\"a\", \"b\", \"c\"]",
    );
    assert_eq!(problems(&classes), "");
    for (job, wanted) in [
        (
            format!("{COMPARE}families = [\"forest\", \"nearest\"]\n"),
            "found \"nearest\", wanted some of euclidean, cosine",
        ),
        (
            format!("{COMPARE}families = [\"euclidean\"]\n"),
            "another family to compare with",
        ),
        (
            format!("{number}families = [\"unpsl\"]\n"),
            "an outcome with classes for \"unpsl\"",
        ),
        (
            format!("{classes}families = [\"regression_model\"]\n"),
            "an outcome of two classes",
        ),
        (
            format!("{COMPARE}[unpsl]\nlambda_sparsity = [0.1, 0.2]\n"),
            "nothing is chosen in the folds",
        ),
        (
            format!("{COMPARE}[unpsl]\nneighbours = 7\n"),
            "wanted neighbours in [compare]",
        ),
        (
            format!("{COMPARE}[regression]\nselection = \"aic\"\n"),
            "all features stay",
        ),
        (
            format!("{COMPARE}[forest]\nscope = \"local\"\n"),
            "found a key that means nothing in a comparison",
        ),
        (format!("{COMPARE}folds = 1\n"), "a whole number from 2"),
    ] {
        let found = problems(&job);
        assert!(found.contains(wanted), "{found}\n{wanted}");
    }
}
