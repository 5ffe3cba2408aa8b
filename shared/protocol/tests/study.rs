//! Promise: a study is read whole or refused with all its problems, and a job of it has nothing that the study has not.

#![allow(clippy::unwrap_used)] // functions that tests share

use protocol::job::Job;
use protocol::method::Method;
use protocol::study::{Study, split};
use protocol::time::Timestamp;

fn certificate(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

fn text() -> String {
    let hospitals = ["north", "south", "east"].iter().zip(['1', '2', '3']);
    let hospitals = hospitals
        .map(|(name, digit)| {
            format!(
                "{{ name = {name:?}, certificate = {:?} }}",
                certificate(digit)
            )
        })
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "name = \"heart\"\ntitle = \"Who is alike?\"\npurpose = \"Care\"\nuntil = \"2027-12-31\"\n\
         operators = [{{ name = \"lab\", certificate = {:?} }}]\nhospitals = [{hospitals}]\n\
         methods = [\"unpsl\", \"regression\"]\nlimits = {{ runs = 10, rounds = 500, queries = 0 }}\n\
         [[outcomes]]\nname = \"disease\"\nlabel = \"Disease\"\ncolumn = \"num\"\nkind = \"binary\"\npositive = [\"1\"]\n\
         [[outcomes]]\nname = \"death\"\nlabel = \"Death\"\ncolumn = \"days\"\nkind = \"survival\"\nevent = \"dead\"\n\
         [[features]]\nname = \"age\"\nkind = \"numeric\"\n[[features]]\nname = \"sex\"\nkind = \"binary\"\n",
        certificate('a')
    )
}

const JOB: &str =
    "name = \"a\"\nmethod = \"unpsl\"\nstudy = \"heart\"\noutcome = \"disease\"\n[unpsl]\n";

fn problems(text: &str) -> String {
    Study::parse(text).map_or_else(|errors| errors.to_string(), |_| String::new())
}

fn job(own: &str) -> Result<Job, String> {
    let study = Study::parse(&text()).unwrap();
    Job::parse(&study.join(own)).map_err(|errors| errors.to_string())
}

#[test]
fn a_whole_study_is_read_and_its_digest_is_of_every_byte() {
    let study = Study::parse(&text()).unwrap();
    assert_eq!(study.text, text());
    assert_eq!((study.outcomes.len(), study.features.len()), (2, 2));
    let other = Study::parse(&format!("{}\n", text())).unwrap();
    assert_ne!(study.digest(), other.digest());
    assert_eq!(study.digest().len(), 64);
}

#[test]
fn every_problem_of_a_study_comes_at_once_with_its_line() {
    let text = text()
        .replace("\"Who is alike?\"", "\"Who\\nis alike?\"")
        .replace("2027-12-31", "2027-13-31")
        .replace("\"south\"", "\"north\"")
        .replace(&certificate('3'), "sha256:33")
        .replace("\"unpsl\", ", "\"unpls\", ")
        .replace("name = \"death\"", "name = \"disease\"")
        .replace("name = \"sex\"", "name = \"dead\"")
        .replace("purpose", "purposes");
    let found = problems(&text);
    for wanted in [
        "line 2: title: found \"Who\\nis alike?\", wanted one line of text",
        "line 3: purposes: found an unknown key; did you mean \"purpose\"?",
        "line 4: until: found \"2027-13-31\", wanted the last day of the study",
        "line 6: hospitals.name: found \"north\" twice",
        "line 6: hospitals.certificate: found \"sha256:33\", wanted \"sha256:\" and 64 digits",
        "line 7: methods: found \"unpls\", wanted one of \"unpsl\"",
        "did you mean \"unpsl\"?",
        "outcomes.name: found \"disease\" twice",
        "features.name: found \"dead\", the outcome's column",
    ] {
        assert!(found.contains(wanted), "{wanted} is not in\n{found}");
    }
}

/// Events are summed by cells up to the horizon: those of two grids differ by few events.
#[test]
fn outcomes_by_one_time_have_one_horizon() {
    let other = |column: &str, horizon: &str| {
        let outcome = format!(
            "[[outcomes]]\nname = \"relapse\"\nlabel = \"Relapse\"\ncolumn = {column:?}\nkind = \"survival\"\n\
             event = \"back\"\n{horizon}[[features]]\nname = \"age\""
        );
        problems(&text().replacen("[[features]]\nname = \"age\"", &outcome, 1))
    };
    for (column, horizon) in [("days", ""), ("months", "horizon = 60\n")] {
        assert_eq!(other(column, horizon), "");
    }
    let found = other("days", "horizon = 60\n");
    let wanted = "outcomes.horizon: found 60, wanted none, as of another outcome by this time; several go to \"horizons\"";
    assert!(found.contains(wanted), "{found}");
}

#[test]
fn a_study_renews_others_by_their_names() {
    let renewing =
        |names: &str| text().replace("methods =", &format!("renews = {names}\nmethods ="));
    let study = Study::parse(&renewing("[\"heart-2025\", \"lung\"]")).unwrap();
    let names: Vec<&str> = study.renews.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["heart-2025", "lung"]);
    assert!(Study::parse(&text()).unwrap().renews.is_empty());
    for (names, wanted) in [
        (
            "[\"heart\"]",
            "line 7: renews: found \"heart\" again, wanted earlier studies, each once",
        ),
        ("[\"a\", \"a\"]", "renews: found \"a\" again"),
        ("[\"A b\"]", "renews: found \"A b\", wanted a-z, 0-9"),
        (
            "[\"a\", \"b\", \"c\", \"d\", \"e\"]",
            "renews: found 5 studies, wanted at most 4",
        ),
        ("\"lung\"", "renews: found"),
    ] {
        let found = problems(&renewing(names));
        assert!(found.contains(wanted), "{wanted} is not in\n{found}");
    }
}

#[test]
fn one_hospital_has_nobody_to_add_up_with_and_two_have() {
    let other = |name: &str, digit| {
        format!(
            ", {{ name = {name:?}, certificate = {:?} }}",
            certificate(digit)
        )
    };
    let two = text().replace(&other("east", '3'), "");
    assert_eq!(problems(&two), "");
    let one = two.replace(&other("south", '2'), "");
    let found = problems(&one);
    let wanted = "hospitals: found 1 hospitals, wanted 2 to";
    assert!(found.contains(wanted), "{found}");
}

#[test]
fn what_people_read_is_what_programs_read() {
    for (character, name) in [
        ("\\u202e", "U+202E"),
        ("\u{2067}", "U+2067"),
        ("\\u001b", "U+001B"),
    ] {
        let found = problems(&text().replace("Care", &format!("Care{character}")));
        let wanted = format!("line 3: found the character {name}, wanted none that hides");
        assert!(found.contains(&wanted), "{found}");
        let found =
            job(&JOB.replace("name = \"a\"", &format!("name = \"a{character}\""))).unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}

#[test]
fn a_job_of_a_study_has_its_hospitals_its_outcome_and_its_features() {
    let study = Study::parse(&text()).unwrap();
    let whole = job(JOB).unwrap();
    assert_eq!(whole.sites, study.roster());
    assert_eq!(whole.cohort.outcome, study.outcomes[0].specification);
    assert_eq!(whole.cohort.features, study.features);
    assert_eq!(whole.study.as_deref(), Some(&study));
    assert_eq!(split(&whole.text), (JOB, Some(text().as_str())));
    let some = job(&JOB.replace("[unpsl]", "features = [\"sex\"]\n[unpsl]")).unwrap();
    assert_eq!(some.cohort.features, study.features[1..]);
}

#[test]
fn a_job_has_nothing_that_its_study_has_not() {
    let replaced = |from: &str, to: &str| job(&JOB.replace(from, to)).unwrap_err();
    // Whose table it is, is not known then: one mistake is one problem.
    let misspelt = replaced("method = \"unpsl\"", "method = \"unpls\"");
    assert_eq!(misspelt.matches("found ").count(), 1, "{misspelt}");
    for (found, wanted) in [
        (
            replaced("disease", "diseases"),
            "outcome: found \"diseases\", wanted one of \"disease\", \"death\" of the study \"heart\"; did you mean \"disease\"?",
        ),
        (
            replaced("[unpsl]", "features = [\"agee\"]\n[unpsl]"),
            "features: found \"agee\", wanted one of \"age\", \"sex\" of the study \"heart\"; did you mean \"age\"?",
        ),
        (
            replaced("[unpsl]", "features = []\n[unpsl]"),
            "features: found none",
        ),
        (
            replaced("[unpsl]", "features = [\"age\", \"age\"]\n[unpsl]"),
            "features: found \"age\" twice",
        ),
        (
            {
                let forest = JOB.replace("\"unpsl\"", "\"forest\"");
                job(&forest.replace("[unpsl]", "[forest]")).unwrap_err()
            },
            "wanted one of \"unpsl\", \"regression\" of the study",
        ),
        (
            replaced("[unpsl]", "sites = [\"north\"]\n[unpsl]"),
            "sites: found the job's own, wanted none",
        ),
        (
            replaced("\"heart\"", "\"hearts\""),
            "study: found \"hearts\", wanted \"heart\"",
        ),
        (
            replaced("outcome = \"disease\"", "[outcome]\ncolumn = \"x\""),
            "outcome: found table, wanted a string",
        ),
    ] {
        assert!(found.contains(wanted), "{wanted} is not in\n{found}");
    }
    let alone = Job::parse(JOB).unwrap_err().to_string();
    assert!(
        alone.contains("study: found \"heart\" without its text"),
        "{alone}"
    );
    let broken = Job::parse(
        &Study::parse(&text())
            .unwrap()
            .join(JOB)
            .replace("2027-12", "2027-13"),
    );
    let broken = broken.unwrap_err().to_string();
    assert!(
        broken.contains("line 4: the study: until: found"),
        "{broken}"
    );
}

#[test]
fn a_study_is_over_when_its_last_day_is() {
    let study = Study::parse(&text()).unwrap();
    let midnight = 1_830_297_600_000; // 2028-01-01T00:00:00Z
    assert!(!study.is_over(Timestamp(midnight - 1)));
    assert!(study.is_over(Timestamp(midnight)));
}

#[test]
fn the_card_is_of_all_outcomes_and_features_whatever_methods_are_allowed() {
    let card = job("name = \"a\"\nmethod = \"card\"\nstudy = \"heart\"\n").unwrap();
    let Method::Card(settings) = &card.method else {
        panic!("another method");
    };
    assert_eq!((settings.outcomes.len(), settings.features.len()), (2, 2));
    assert_eq!(card.cohort.outcome.column, "num");
    // Every study has a card, which counts for no limit.
    let facts = card.facts("lab");
    assert_eq!((facts.method, facts.limits), (None, None));
    assert!(job("name = \"a\"\nmethod = \"card\"\nstudy = \"heart\"\n[card]\n").is_ok());
    for (own, wanted) in [
        (
            "outcome = \"disease\"\n",
            "outcome: found the job's own, wanted none: the method is of all that the study has",
        ),
        (
            "features = [\"age\"]\n",
            "features: found the job's own, wanted none",
        ),
        ("[card]\ngroups = 2\n", "card.groups: found an unknown key"),
    ] {
        let text = format!("name = \"a\"\nmethod = \"card\"\nstudy = \"heart\"\n{own}");
        let found = job(&text).unwrap_err();
        assert!(found.contains(wanted), "{wanted} is not in\n{found}");
    }
    let alone = "name = \"a\"\nmethod = \"card\"\nsites = [\"a\", \"b\", \"c\"]\n[outcome]\ncolumn = \"num\"\n\
                 kind = \"numeric\"\n[[features]]\nname = \"age\"\nkind = \"numeric\"\n";
    let found = Job::parse(alone).unwrap_err().to_string();
    assert!(
        found.contains("method: found \"card\" without a study"),
        "{found}"
    );
}

#[test]
fn groups_have_labels_and_numbers_units_and_the_card_has_an_end() {
    let labelled = text().replace(
        "label = \"Death\"",
        "label = \"Death\"\nunit = \"days\"\nlevel_labels = { event = \"died\" }",
    );
    let study = Study::parse(&labelled).unwrap_or_else(|errors| panic!("{errors}"));
    let death = &study.outcomes[1].specification;
    assert_eq!(
        (death.unit.as_str(), death.group_label("event")),
        ("days", "died")
    );
    assert_eq!(death.group_label("censored"), "censored");
    let wrong = text().replace(
        "label = \"Disease\"",
        "label = \"Disease\"\nunit = \"mg\"\nlevel_labels = { posotive = \"ill\" }",
    );
    let found = problems(&wrong);
    for wanted in [
        "outcomes.level_labels: found \"posotive\", wanted labels of \"negative\", \"positive\"; did you mean \"positive\"?",
        "outcomes.unit: found \"mg\", wanted none",
    ] {
        assert!(found.contains(wanted), "{wanted} is not in\n{found}");
    }
    // Three states each: 3^6 combinations.
    let many: String = (0..4)
        .map(|number| {
            format!("[[outcomes]]\nname = \"o{number}\"\nlabel = \"O\"\ncolumn = \"o{number}\"\nkind = \"binary\"\npositive = [\"1\"]\n")
        })
        .collect();
    let found = problems(&text().replace(
        "[[features]]\nname = \"age\"",
        &format!("{many}[[features]]\nname = \"age\""),
    ));
    let wanted = "outcomes: found 729 combinations of their groups, wanted at most 512";
    assert!(found.contains(wanted), "{found}");
}
