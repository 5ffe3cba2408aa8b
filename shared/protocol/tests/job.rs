//! Promise: a job is read whole or refused with all its problems.

use protocol::job::Job;

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
