//! What a message can tell in the worst case: of a coordinator that lies, to somebody who reads all of it.

use privacy::Rules;
use protocol::job::{ForestScope, Job, Method};
use similarity::unpsl::CorrelationScope;

const TOGETHER: &str =
    "how often any two levels or values occur together, exactly, also where that is one patient";

/// One sentence for people who are no statisticians; `kind` is one that the job has.
pub(super) fn tells(kind: &str, rules: &Rules, job: &Job) -> String {
    let least = rules.cell_min.max(1);
    let node = rules.terminal_node_min.max(least);
    match kind {
        "description" => "The exact number of patients, and of each outcome class. Both are at least the minima; below \
             them the site refuses, which tells that they are below."
            .to_owned(),
        "moments" => format!(
            "The exact mean and spread of every number, and how many patients have each level or no value; counts \
             under {least} are rounded. Who knows all patients but one can work out that one."
        ),
        "quantiles" => format!(
            "How many patients lie in each stretch of a number's range, in stretches of {least} patients or more, and \
             so every quantile to the width of a stretch."
        ),
        "prepared" if is_pooled(job) => format!("The second moments X'X: {TOGETHER}."),
        "prepared" | "correlated" => "Nothing of any patient.".to_owned(),
        "contribution" => format!(
            "To an honest coordinator: how the common metric would fit this site's patients better, as a whole. To one \
             that lies and chooses the metric: the second moments X'X, that is {TOGETHER}; and by steep metrics parts \
             of single patients' records, blurred by the brake similarity_max, which does not rule them out."
        ),
        "validation" => "How many patients a metric of the coordinator's choice classifies right and wrong, where both \
             counts are 0 or not small. Many metrics narrow down where patients lie."
            .to_owned(),
        "finished" => "How well one metric of the coordinator's choice fits: one exact number, and how many patients of \
             each class are taken for which, where no such count is small."
            .to_owned(),
        "trees" => format!(
            "For groups of {node} patients or more, each told by ranges of a few features: how many there are, and their \
             outcome (classes and events as rounded counts, a number as its exact mean). Each tree is of patients \
             drawn at random by the site's own key; groups of different trees that overlap allow estimates of smaller \
             ones."
        ),
        "judgement" => "How often the forest errs on this site's patients, where neither errors nor right answers are \
             few; and by how much it errs more when a feature is shuffled, exactly."
            .to_owned(),
        _ => "Why not: names of rules with the numbers that the policy and the job set, names of the job's columns, or a \
             fixed sentence; no value, no count of patients or rows. That a rule says no tells on which side of it the \
             cohort lies: one yes or no a rule."
            .to_owned(),
    }
}

/// What is closed by a rule, by a brake, and not at all.
pub(super) fn closing(rules: &Rules, job: &Job) -> [(&'static str, String); 3] {
    let least = rules.cell_min.max(1);
    let small = match least {
        1 => "Counts leave as they are, for cell_min is 1.".to_owned(),
        least => format!(
            "What is sent as a count of 1 to {} patients leaves rounded or not at all.",
            least - 1
        ),
    };
    let rule = format!(
        "Rows and identifiers have no message. {small} A site answers only what this job asks and gives one answer to a \
         question, in at most {} runs and {} rounds on one cohort, for jobs of {} sites or more, on one cohort or on others that \
         differ by {} patients or more.",
        rules.runs_per_cohort_max,
        rules.rounds_per_cohort_max,
        rules.sites_min,
        rules.cohort_difference_min,
    );
    let (brake, open) = match &job.method {
        Method::Unpsl(_) => (
            format!(
                "Records read from jumps of the gradient: a metric under which a patient's similarity with itself is \
                 more than {} in the mean (or 4 a column) shuts the run. It blurs them and proves nothing.",
                rules.similarity_max
            ),
            format!(
                "The second moments: the rounds of this job tell a coordinator that lies {TOGETHER}. No noise is \
                 added to any number: who knows all patients but one, or all other sites, can work out the rest."
            ),
        ),
        Method::Forest(settings) if settings.scope == ForestScope::Local => (
            "Nothing: no tree leaves.".to_owned(),
            "No noise is added to any number: who knows all patients but one can work out what is told of that one."
                .to_owned(),
        ),
        Method::Forest(_) => (
            "Groups of two forests that differ by one patient: bags follow from the site's own key and the cut points, and a run \
             grows and judges one forest."
                .to_owned(),
            "No noise is added to any number: who knows all patients but one, or all other sites, can work out the rest."
                .to_owned(),
        ),
    };
    [
        ("Closed by a rule", rule),
        ("Held by a brake only", brake),
        ("Not closed", open),
    ]
}

fn is_pooled(job: &Job) -> bool {
    match &job.method {
        Method::Unpsl(settings) => settings.objective.correlation == CorrelationScope::Pooled,
        Method::Forest(_) => false,
    }
}
