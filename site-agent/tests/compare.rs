//! Promise: what a site says of its held-out patients by a forest that all sites have in common, another program counts alike from the
//! same trees, bags and folds (tests/reference/compare/common_forest.py); and neighbours predict survival times as lifelines' Kaplan-Meier
//! curves do (tests/reference/compare/survival.py).

#![allow(clippy::unwrap_used)] // a test panics, and says what it found

use ndarray::Array1;
use privacy::Covered;
use privacy::sums::Words;
use protocol::job::Job;
use protocol::message::compare::{self, FamilyCounts};
use protocol::message::forest::{self, Growing, NodeKind, NodeRule, TerminalTable, Trees};
use protocol::message::{Answer, Begin, Encapsulations, Introduction, Request, ToSite, Warrant};
use protocol::method::Method;
use protocol::method::compare::settings::Family;
use protocol::name::{RunId, SiteName};
use protocol::opening::Opening;
use protocol::progress::Ending;
use protocol::replica::Replica;
use protocol::run::{Action, Event, Run};
use protocol::time::Timestamp;
use serde_json::{Value, json};
use similarity::cohort::{Cohort, Outcome};
use similarity::learn::forest::edges::PooledEdges;
use similarity::learn::forest::{ClassWeights, InBag, grow};
use similarity::learn::unpsl::selection::Folds;
use similarity::numeric::seed::Seed;
use site_agent::config::SiteConfig;
use site_agent::method::Computation;
use site_agent::source::read_cohort;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const SITES: [&str; 3] = ["north", "south", "east"];
const FOLDS: usize = 5;
/// What every site's own key gives here, whatever it is asked.
const KEY: u64 = 17;
/// Where what the other program starts from is written, if this is set.
const TREES: &str = "KINDRED_COMMON_FOREST";
/// The same for the folds of survival times.
const OF_DAYS: &str = "KINDRED_FOLDS";

fn reference(name: &str) -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    root.join("tests/reference").join(name)
}

/// The job of the reference of validation, as a comparison by forests.
fn job() -> Job {
    let text = std::fs::read_to_string(reference("validation/job.toml")).unwrap();
    let (head, _) = text.split_once("[unpsl]").unwrap();
    let head = head.replace("method = \"unpsl\"", "method = \"compare\"");
    let head = head.replace("kind = \"numeric\"", "kind = \"numeric\"\nrange = [-8, 8]");
    Job::parse(&format!(
        "{head}[compare]\nfamilies = [\"common_forest\", \"common_forest_model\"]\nfolds = {FOLDS}\n[forest]\ntrees = 60\n"
    ))
    .unwrap_or_else(|errors| panic!("{errors}"))
}

/// What was said in a run without any policy.
struct Said {
    cohorts: Vec<Cohort>,
    growing: BTreeMap<usize, Arc<Growing>>,
    trees: Vec<Trees>,
    judged: Vec<Vec<FamilyCounts>>,
}

fn site(job: &Job, name: &str, table: &Path, folder: &Path) -> (Computation, Cohort) {
    let text = format!(
        "site = '{name}'\ncoordinator = 'localhost:7443'\nfolder = '{name}'\n\
         [tls]\nca = 'ca.pem'\ncertificate = 'c.pem'\nkey = 'k.pem'\n\
         [source]\nkind = 'csv'\npath = '{}'\npatient = 'patient'\n\
         [policy]\noperators = ['*']\nmethods = ['*']\n",
        table.display()
    );
    let config = SiteConfig::parse(&text, folder).unwrap();
    let cohort = read_cohort(&config.source, job).unwrap();
    let own = cohort.cohort.clone();
    let folder = folder.join(name);
    let secret = Box::new(|_: &[u8]| KEY);
    let rules = privacy::Rules::default();
    let made = Computation::new(job.clone(), Seed(5), cohort, folder, &rules, secret);
    (made.unwrap_or_else(|_| panic!("a computation")), own)
}

/// A run of sites whose tables lie in a folder of the references.
fn said(job: &Job, tables: &str) -> Said {
    let home = TempDir::new().unwrap();
    let tables = reference(tables);
    let names: Vec<&str> = job.sites.iter().map(SiteName::as_str).collect();
    let of_site = |name: &&str| {
        let table = tables.join(format!("{name}.csv"));
        site(job, name, &table, home.path())
    };
    let (mut sites, cohorts): (Vec<Computation>, Vec<Cohort>) = names.iter().map(of_site).unzip();
    let mut said = Said {
        cohorts,
        growing: BTreeMap::new(),
        trees: Vec::new(),
        judged: Vec::new(),
    };
    let run = RunId::new("0123456789ab").unwrap();
    let now = Timestamp(1_000);
    let is_one = names.len() == 1;
    let opening = opened_by_nobody(&sites);
    let begin = Begin {
        run: run.clone(),
        job: job.text.clone(),
        seed: 5,
        warrant: Warrant::default(),
        opening: None,
    };
    let mut replica = Replica::new(&begin, job.clone(), 0, Some(&opening));
    let mut run = Run::new(run, job.clone(), 5, Warrant::default(), now);
    run = match is_one {
        true => run.counted(opening.counts[0].clone()),
        false => run.opened(&opening),
    };
    let mut events: Vec<Event> = job.sites.iter().cloned().map(Event::Connected).collect();
    while run.ending().is_none() {
        let (next, actions) = run.step(now, events.remove(0));
        run = next;
        for action in actions {
            let (site, ask) = match action {
                Action::Send {
                    site,
                    message: ToSite::Ask(ask),
                } => (site, ask),
                Action::Send {
                    site,
                    message: ToSite::Closed(closed),
                } if site.as_str() == names[0] => {
                    replica.follow(&closed).unwrap();
                    continue;
                }
                _ => continue,
            };
            let place = names.iter().position(|known| *known == site.as_str());
            let place = place.unwrap();
            if let Request::Forest(forest::Request::Grow(growing)) = &ask.request {
                said.growing.insert(place, Arc::clone(growing));
            }
            let patients = said.cohorts[place].patients() as u64;
            let answer = sites[place].answer(&ask.request);
            let answer = answer.unwrap_or_else(|_| panic!("an answer to {}", ask.exchange));
            match &answer {
                Answer::Forest(forest::Answer::Grown(trees)) => said.trees.push(trees.clone()),
                Answer::Compare(compare::Answer::Judged(own)) => said.judged.push(own.clone()),
                _ => {}
            }
            let blank = replica.next().and_then(|next| next.blank);
            let answer = match blank {
                Some(blank) if !is_one => uncovered(answer.in_shape_of(&blank, patients)),
                Some(_) | None => answer,
            };
            events.push(Event::Answered {
                signature: Vec::new(),
                site,
                exchange: ask.exchange,
                answer,
            });
        }
    }
    assert_eq!(run.ending(), Some(&Ending::Completed));
    said
}

/// A study's opening by which nobody covers anything.
fn opened_by_nobody(sites: &[Computation]) -> Opening {
    let own = |site: &Computation| site.counts().unwrap_or_else(|_| panic!("histograms"));
    let mut counts = own(&sites[0]);
    for site in &sites[1..] {
        for (sum, own) in counts.iter_mut().zip(own(site)) {
            let cells = sum.counts.iter_mut().zip(own.counts);
            cells.for_each(|(sum, own)| *sum += own);
        }
    }
    let sites = sites.len();
    let introduction = Introduction {
        agreement: Vec::new(),
        encapsulation: Vec::new(),
        signing: Vec::new(),
        patients_at_most: 10_000,
        chain: Vec::new(),
        scheme: 0,
        signature: Vec::new(),
    };
    let told = Encapsulations {
        ciphertexts: Vec::new(),
        common: Vec::new(),
    };
    Opening {
        run: RunId::new("0123456789cd").unwrap(),
        digest: "0".repeat(64),
        introductions: vec![introduction; sites],
        encapsulations: vec![told; sites],
        left_out: Vec::new(),
        counts: vec![counts],
    }
}

/// The words of an answer without a mask.
fn uncovered(mut answer: Answer) -> Answer {
    Answer::Covered(Covered {
        kind: answer.kind_name(),
        words: Words::of(&mut answer).unwrap(),
        tag: None,
    })
}

/// The bags of a site's trees, drawn once more.
fn bags(job: &Job, cohort: &Cohort, growing: &Growing) -> InBag {
    let Method::Compare(settings) = &job.method else {
        panic!("a comparison");
    };
    let edges = PooledEdges::new(growing.edges.clone()).unwrap();
    let mut settings = settings.forest.growing(cohort.outcome(), growing.trees);
    settings.class_weights = ClassWeights::Given(growing.class_weights.clone());
    let rules = privacy::Rules::default();
    let least = u32::try_from(rules.terminal_node_min.max(rules.cell_min)).unwrap();
    grow(cohort, &settings.federated(edges, least), Seed(KEY))
        .unwrap()
        .in_bag
}

/// The fold of each patient.
fn folds(codes: &Array1<u32>) -> Vec<usize> {
    let parted = Folds::stratified(codes, FOLDS, Seed(KEY)).unwrap();
    let mut folds = vec![0; codes.len()];
    for fold in 0..FOLDS {
        for patient in parted.split(fold).held_out {
            folds[patient] = fold;
        }
    }
    folds
}

fn written(said: &Said, job: &Job) -> Value {
    let node = |kind: &NodeKind| match kind {
        NodeKind::Split {
            feature,
            rule: NodeRule::AtMost(cut),
            left,
            ..
        } => json!([feature, cut, left]),
        NodeKind::Terminal(TerminalTable::Classes(counts)) => json!(counts),
        _ => panic!("a node of another kind"),
    };
    let mut sites = Vec::new();
    for (place, cohort) in said.cohorts.iter().enumerate() {
        let Outcome::Classes { codes, .. } = cohort.outcome() else {
            panic!("classes");
        };
        let folds = folds(codes);
        let in_bag = bags(job, cohort, &said.growing[&place]);
        let of_tree = |tree: usize| -> String {
            let seen = in_bag.of_tree(tree).iter();
            seen.map(|count| if *count > 0 { '1' } else { '0' })
                .collect()
        };
        let trees = said.trees[place].trees.iter();
        let trees: Vec<Value> = trees
            .map(|tree| tree.nodes().iter().map(|one| node(&one.kind)).collect())
            .collect();
        sites.push(json!({
            "site": SITES[place],
            "folds": folds,
            "in_bag": (0..in_bag.trees()).map(of_tree).collect::<Vec<String>>(),
            "trees": trees,
        }));
    }
    json!(sites)
}

#[test]
fn held_out_counts_by_a_common_forest_are_those_of_another_program_from_the_same_trees() {
    let job = job();
    let said = said(&job, "validation");
    if let Some(path) = std::env::var_os(TREES) {
        let text = serde_json::to_string(&written(&said, &job)).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let expected = std::fs::read_to_string(reference("compare/common_forest.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    for (site, judged) in SITES.iter().zip(&said.judged) {
        for family in [
            Family::Euclidean,
            Family::CommonForest,
            Family::CommonForestModel,
        ] {
            let own = judged.iter().find(|one| one.family == family).unwrap();
            let known = &expected["sites"][site][family.name()];
            assert_eq!(
                json!(own.counts.confusion),
                known["confusion"],
                "{site}, {family:?}"
            );
            let brier = |family: Family| {
                let known = &expected["sites"][site][family.name()];
                known["half_squares"].as_f64().unwrap()
            };
            let loss = own.counts.loss.unwrap();
            let wanted = brier(family);
            assert!(
                (loss - wanted).abs() < 1e-9,
                "{site}, {family:?}: {loss} and {wanted}"
            );
            if family != Family::Euclidean {
                let [total, gain, ..] = own.counts.gains.errors.unwrap();
                let patients: u64 = own.counts.confusion.iter().flatten().flatten().sum();
                assert!((total - patients as f64).abs() < 1e-9);
                assert!((gain - (brier(Family::Euclidean) - wanted)).abs() < 1e-9);
            }
        }
    }
}

#[test]
fn neighbours_predict_survival_times_as_kaplan_meier_curves_of_another_program_do() {
    let expected = std::fs::read_to_string(reference("compare/survival.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let features: String = (0..4)
        .map(|number| format!("[[features]]\nname = 'x{number}'\nkind = 'numeric'\n"))
        .collect();
    for (known, horizon) in [("without", ""), ("with", "horizon = 400")] {
        let job = Job::parse_for_one(&format!(
            "name = 'days'\nmethod = 'compare'\nsites = ['days']\n[outcome]\n\
             column = 'days'\nkind = 'survival'\nevent = 'seen'\nevent_values = ['1']\n{horizon}\n{features}\
             [compare]\nfamilies = ['cosine']\nfolds = {FOLDS}\n"
        ));
        let said = said(&job.unwrap_or_else(|errors| panic!("{errors}")), "compare");
        let Outcome::Survival { event, .. } = said.cohorts[0].outcome() else {
            panic!("survival times");
        };
        if let Some(path) = std::env::var_os(OF_DAYS) {
            std::fs::write(path, json!(folds(&event.mapv(u32::from))).to_string()).unwrap();
        }
        for own in &said.judged[0] {
            let wanted = expected[known][own.family.name()]["concordance"].as_f64();
            let errors = own.errors.unwrap();
            let found = 1.0 - errors.error / errors.total as f64;
            assert!(
                (found - wanted.unwrap()).abs() < 1e-12,
                "{horizon:?}, {:?}: {found} and {wanted:?}",
                own.family
            );
        }
    }
}
