//! Every limit of the conversation, by name.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Sites in one run.
pub const SITES_MAX: usize = 256;
/// Sites that a sum is over, at least.
pub const SUMMED_SITES_MIN: usize = 2;
/// Words of one covered answer at most (64 MiB).
pub const WORDS_MAX: usize = 1 << 22;
/// Megabytes of all sites' answers to one question that every site receives, where the job does not say. Of more
/// they hear the sum.
pub const ANSWERS_MEGABYTES: u64 = 64;
/// The most that a job can say of them.
pub const ANSWERS_MEGABYTES_MAX: u64 = 256;
/// Bytes of all sites' answers to one question of a card that every site receives, unless its job says otherwise: of more the sum alone.
pub const CARD_ANSWERS_BYTES: u64 = 64 << 10;
/// What a result says of missing values is a multiple of so many patients, rounded up: a share tells of no fewer.
pub const PUBLISHED_PATIENTS: u64 = 10;
/// A published count, rounded up.
pub(crate) fn in_tens(count: u64) -> u64 {
    count.next_multiple_of(PUBLISHED_PATIENTS)
}
/// Whether a count is of patients too few to be published.
pub(crate) fn is_few(count: u64) -> bool {
    count < PUBLISHED_PATIENTS
}
/// Patients of all sites in a group, or in the difference of two sums, at least on the card of a study.
pub const CARD_PATIENTS_MIN: u64 = 2 * PUBLISHED_PATIENTS;
/// Combinations of who has which outcome of a study, and in which of its groups.
pub const PARTS_MAX: usize = 512;
/// Counts on the card of a study: levels and missing values by group.
pub const CARD_COUNTS_MAX: usize = 1 << 19;
/// Bytes of a public key, or of a secret encapsulated by one.
pub const KEY_BYTES_MAX: usize = 2_048;
/// Characters of a site's, operator's or job's name.
pub const NAME_LENGTH_MAX: usize = 64;
/// Bytes of a study's text.
pub const STUDY_LENGTH_MAX: usize = JOB_LENGTH_MAX / 2;
/// Closed studies that a site is notified of at once.
pub const CLOSED_STUDIES_MAX: usize = 1_000;
/// Earlier studies that a study renews.
pub const RENEWALS_MAX: usize = 4;
/// Outcomes of a study.
pub const OUTCOMES_MAX: usize = 20;
/// Bytes of a job file, with the study that it is of.
pub const JOB_LENGTH_MAX: usize = 256 << 10;
/// Problems of a configuration or a job that are reported one by one.
pub const DOCUMENT_PROBLEMS_MAX: usize = 100;
/// Characters of what a problem of a configuration or a job quotes.
pub const QUOTE_LENGTH_MAX: usize = 200;
/// So long an answer is waited for before another run may go first; a run never gives up waiting.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// lambda_1 and lambda_2 of a job at most.
pub const LAMBDA_MAX: f64 = 1e15;
/// The penalty rho of a job at least.
pub const PENALTY_MIN: f64 = 1e-15;
/// The penalty rho of a job at most.
pub const PENALTY_MAX: f64 = 1e15;
/// Both tolerances of a job at most.
pub const TOLERANCE_MAX: f64 = 1.0;
/// The threshold b of a job at most, either side of 0.
pub const THRESHOLD_MAX: f64 = 1e9;
/// A count of patients or pairs at one site at most: sums over [`SITES_MAX`] sites fit 64 bits.
pub const COUNT_MAX: u64 = 1 << 40;
/// A number that a site tells is at most this, either side of 0: fourth powers of such numbers, summed over
/// all entries and sites, are finite.
pub const MAGNITUDE_MAX: f64 = 1e60;
/// Features of a job.
pub const FEATURES_MAX: usize = 100_000;
/// Levels of one categorical feature.
pub const LEVELS_MAX: usize = 50_000;
/// Classes of an outcome.
pub const CLASSES_MAX: usize = 100;
/// Coefficients of a regression over patients of all sites, at most.
pub const PARAMETERS_SHARE_MAX: f64 = 0.33;
/// Columns of a regression.
pub const REGRESSION_COLUMNS_MAX: usize = 2_000;
/// Cells of time of a baseline hazard that all sites have in common.
pub const REGRESSION_CELLS_MAX: u32 = 16;
/// Patients of all sites, or events, behind a sum by cell of time that is used or published, at least.
pub const CELL_PATIENTS_MIN: u64 = 2 * PUBLISHED_PATIENTS;
pub use similarity::cohort::spline::SPLINE_MAX;
/// Trees of a forest.
pub const TREES_MAX: usize = 10_000;
/// Nodes of all trees of a forest that travels.
pub const NODES_MAX: usize = 1 << 22;
/// Features of a forest.
pub const FOREST_FEATURES_MAX: usize = 20_000;
/// Event times of a survival forest that travels.
pub const EVENT_TIMES_MAX: usize = 1_000;
/// Cut points of one feature of a forest that travels.
pub const CUTS_MAX: usize = 1_000;
/// Neighbour rules that a site evaluates.
pub const EVALUATIONS_MAX: usize = 16;
/// Queried patients of others in one job.
pub const QUERIES_MAX: usize = 200;
/// Numbers of each of them.
pub const QUERY_NUMBERS_MAX: usize = REGRESSION_COLUMNS_MAX;
/// Clusters of patients of all sites that are looked for.
pub const CLUSTERS_MAX: usize = 8;
/// Samples that the stability of clusters is measured by.
pub const CLUSTER_SAMPLES_MAX: usize = 50;
/// Numbers by which a run may place a patient for clusters to be looked for: their products are released.
pub const CLUSTER_COORDINATES_MAX: usize = 256;
/// Columns of a regression with a common baseline, whose covariance each site receives.
pub const COMMON_COLUMNS_MAX: usize = 128;
/// Bins of a score.
pub const SCORE_BINS_MAX: usize = 100;
/// Kinds of message of one site.
pub const MESSAGE_KINDS_MAX: usize = 64;
/// Folds of a cross-validation.
pub const FOLDS_MAX: usize = 20;
/// Folds of the usual validation of a metric.
pub const VALIDATION_FOLDS: u32 = 5;
/// Numbers that one answer holds at most for the folds of the usual validation (8 MiB).
pub const VALIDATION_ENTRIES_MAX: usize = 1 << 20;
/// Pairs of all sites at most, of a run with the usual validation: each of its folds takes two thirds of them in every round.
pub const VALIDATION_PAIRS_MAX: u64 = 1 << 30;
/// Values of one setting to choose from.
pub const CANDIDATES_MAX: usize = 20;
/// Numbers that one answer holds at most where several metrics are asked about at once (32 MiB).
pub const BATCH_ENTRIES_MAX: usize = 1 << 22;
/// Rows of a wide metric that one question asks about.
pub const ACTIVE_ROWS_MAX: usize = similarity::learn::unpsl::accelerated::ROWS_MAX;
/// Rows of a metric: features, and a row for each level of a categorical one.
pub const METRIC_ROWS_MAX: usize = 1 << 20;
/// Features whose missing share a result tells of one site.
pub const MISSING_SHARES_MAX: usize = 1_000;
/// Groups of one histogram.
pub const GROUPS_MAX: usize = LEVELS_MAX;
/// Notes of a result.
pub const NOTES_MAX: usize = 1_000;
/// Entries of one matrix on the wire (512 MiB of f64).
pub const MATRIX_ENTRIES_MAX: usize = 1 << 26;
/// A plausible age in years: what sites read, what grids cover, and what answers are judged by.
pub const AGE_MAX: f64 = 150.0;
/// Rounds of one run.
pub const ROUNDS_MAX: u32 = 100_000;
/// The ADMM penalties that a site takes.
pub const PENALTIES: RangeInclusive<f64> = 1e-12..=1e15;
/// The relative tolerances of its local solver that a site takes, from tightest to loosest.
pub const LOCAL_TOLERANCES: RangeInclusive<f64> = 1e-9..=1e-4;
/// Patients or pairs of all sites that a site believes.
pub const TOTALS_MAX: u64 = 1 << 60;
/// Problems that a site reports of its cohort in one answer.
pub const PROBLEMS_MAX: usize = 200;
/// Characters of one problem, refusal or failure.
pub const TEXT_LENGTH_MAX: usize = 2_000;
/// Certificates from an operator's to the authority's.
pub const CHAIN_MAX: usize = 4;
/// Bytes of one certificate.
pub const CERTIFICATE_BYTES_MAX: usize = 16 << 10;
/// Bytes of one signature.
pub const SIGNATURE_BYTES_MAX: usize = 1 << 10;
/// Runs that wait in a coordinator's queue.
pub const QUEUE_MAX: usize = 64;
/// Runs of one operator that wait in a coordinator's queue.
pub const QUEUE_PER_OPERATOR_MAX: usize = 8;
/// Studies that one operator has proposed, and that are neither open nor closed.
pub const PROPOSED_PER_OPERATOR_MAX: u64 = 8;
/// Ended runs of one operator that a coordinator keeps; the oldest are dropped first.
pub const RESULTS_PER_OPERATOR_MAX: usize = 200;
/// Bytes of results of one operator that a coordinator keeps; the oldest are dropped first, the newest
/// stays.
pub const RESULT_BYTES_PER_OPERATOR_MAX: u64 = 4 << 30;
/// Messages that wait for one slow connection before it is dropped.
pub const OUTBOX_MAX: usize = 16;

/// Between two signs of life on an idle connection.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
/// A connection without a sign of life for this long after the interval is dead: together under 5 s.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(2);
