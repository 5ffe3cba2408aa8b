//! Studies of tests: of jobs that have everything in themselves, at sites in this process. The sample study's jobs, as such jobs.

use crate::federation::{self, NOW, RESEARCHER, name_of_run};
use crate::programs::Home;
use crate::workspace::text;
use protocol::job::Job;
use protocol::message::{Answer, Begin, Request, Warrant};
use protocol::method::Method;
use protocol::name::SiteName;
use protocol::opening::Opening;
use protocol::progress::Ending;
use protocol::run::Run;
use protocol::study::{
    CertificateFingerprint, Party, SignedApproval, Study, nobody, of_job, pinned, split,
};
use site_agent::cli::{StudyApprove, StudyFile};
use site_agent::run::worker::Worker;
use site_agent::studies::{StudyError, approve};
use std::collections::BTreeMap;
use wire::CredentialFiles;

/// The name of the study that a job becomes.
pub const STUDY: &str = "patients";
/// The run that opens it.
const CARD: &str = "card";

/// The job of the four hospitals with this file name.
pub fn whole_job(name: &str) -> String {
    let study = text("deploy/jobs/heart-disease.study.toml");
    let sites = study.lines().find(|line| line.starts_with("hospitals = "));
    let sites = sites.expect("the hospitals").replace("hospitals", "sites");
    let (_, patients) = study.split_once("[[outcomes]]\n").expect("an outcome");
    let named = |line: &&str| !line.starts_with("name = \"disease\"");
    let patients: Vec<&str> = patients.lines().filter(named).collect();
    let job = text(format!("deploy/jobs/{name}"));
    let of_study = "study = \"heart-disease.study.toml\"\noutcome = \"disease\"\n";
    assert!(job.contains(of_study), "{name}");
    let whole = format!("{sites}\n\n[outcome]\n{}\n", patients.join("\n"));
    job.replace(of_study, &whole)
}

/// A job that has everything in itself, as one of a study.
pub struct OfStudy {
    /// The job without its study.
    pub own: String,
    /// The study, for jobs of every method, whose parties have no certificates yet.
    pub draft: String,
}

/// Parts a job into a study of its patients and a job of it.
pub fn of_study(whole: &str) -> OfStudy {
    let job = Job::parse(whole).unwrap_or_else(|errors| panic!("{errors}"));
    let (own, draft) =
        of_job(&job, RESEARCHER, &[]).unwrap_or_else(|error| panic!("{error}\n{whole}"));
    let named = |key: &str, name: &str| format!("{key} = {name:?}\n");
    let method = format!("methods = [{:?}]", job.method.name());
    let others = |name: &&str| *name != CARD;
    let methods: Vec<&str> = Method::NAMES.iter().copied().filter(others).collect();
    OfStudy {
        own: own.replacen(&named("study", &job.name), &named("study", STUDY), 1),
        draft: draft
            .replacen(&named("name", &job.name), &named("name", STUDY), 1)
            .replacen(&method, &format!("methods = {methods:?}"), 1),
    }
}

/// What the text of a study says of its patients.
pub(crate) fn patients(study: &str) -> &str {
    let (_, patients) = study.split_once("[[outcomes]]").expect("an outcome");
    patients
}

/// The job as one of a study whose parties have no certificates: for whoever only looks.
pub fn looked_at(whole: &str) -> Job {
    let OfStudy { own, draft } = of_study(whole);
    let study = pinned(&draft, |party| Some(nobody(party))).expect("a study");
    let study = Study::parse(&study).unwrap_or_else(|errors| panic!("{errors}"));
    Job::parse(&study.join(&own)).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A study that sites in this process are asked to approve.
pub struct Proposed {
    study: Study,
}

/// A study that sites in this process have approved and opened.
pub struct Opened {
    study: Study,
    opening: Opening,
}

impl Proposed {
    /// The study of the patients that a job is about. Sites that have certificates in `home` are known by them.
    pub fn of(whole: &str, home: &Home) -> Self {
        Self::draft(&of_study(whole).draft, home)
    }

    /// The study of a draft.
    pub fn draft(draft: &str, home: &Home) -> Self {
        let certificate = |party: Party<'_>| {
            let own = match party {
                Party::Operator(_) => None,
                Party::Hospital(name) => {
                    let folder = home.join(&format!("certificates/site-{name}"));
                    wire::fingerprint(&CredentialFiles::in_folder(&folder)).ok()
                }
            };
            Some(own.unwrap_or_else(|| nobody(party)))
        };
        let text = pinned(draft, certificate).unwrap_or_else(|error| panic!("{error}"));
        let study = Study::parse(&text).unwrap_or_else(|errors| panic!("{errors}"));
        Self { study }
    }

    /// A site approves it, whose configuration [`federation::worker`] has written into `home`.
    pub fn approve(&self, home: &Home, site: &str) -> Result<SignedApproval, StudyError> {
        let asked = StudyApprove {
            of: StudyFile {
                config: home.join(&federation::config_file(site)).into(),
                study: home.write("study.toml", &self.study.text),
                json: false,
            },
            consent: Vec::new(),
            confirm_units: true,
        };
        approve(&asked, NOW)
    }

    /// How the run begins that opens it.
    pub fn begin(&self) -> Begin {
        begin(CARD, self.study.card(), 1, None)
    }

    /// The run that opens it.
    pub fn run(&self) -> Run {
        let job = Job::parse(&self.study.card()).expect("a card");
        Run::new(name_of_run(CARD), job, 1, warrant(), NOW)
    }

    /// The first question of the run that opens it, to a site that has approved it.
    pub fn introduce(&self, worker: &mut Worker) -> Answer {
        let sites = self.study.hospitals.len();
        federation::begin_and_ask(worker, self.begin(), sites, Request::Introduce)
    }

    /// The study, once the run that opens it is over.
    pub fn opened(self, card: &Run) -> Opened {
        let ending = card.ending().expect("it is over");
        assert_eq!(*ending, Ending::Completed, "the study did not open");
        let digest = wire::run_digest(&self.begin(), RESEARCHER);
        Opened {
            opening: card.opening(&digest).expect("keys"),
            study: self.study,
        }
    }

    /// All sites approve and open it.
    pub fn open(self, home: &Home, workers: &mut BTreeMap<SiteName, Worker>) -> Opened {
        for site in workers.keys() {
            let approved = self.approve(home, site.as_str());
            approved.unwrap_or_else(|error| panic!("{site}: {error}"));
        }
        let card = federation::play(self.run(), workers, |_| ());
        self.opened(&card)
    }
}

impl Opened {
    /// The study of the patients that a job is about, at sites that have approved and opened it.
    pub fn of(whole: &str, home: &Home, workers: &mut BTreeMap<SiteName, Worker>) -> Self {
        Proposed::of(whole, home).open(home, workers)
    }

    /// A job about its patients, which has everything in itself, as one of it.
    pub fn job(&self, whole: &str) -> Job {
        let OfStudy { own, draft } = of_study(whole);
        let known = patients(&self.study.text);
        assert_eq!(patients(&draft), known, "other patients");
        self.parse(&own)
    }

    /// A job of it that names it.
    pub fn parse(&self, own: &str) -> Job {
        Job::parse(&self.study.join(own)).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// How a run of a job of it begins.
    pub fn begin(&self, run: &str, job: &Job, seed: u64) -> Begin {
        assert!(split(&job.text).1.is_some(), "a job of the study");
        begin(run, job.text.clone(), seed, Some(&self.opening))
    }

    /// A run of a job of it.
    pub fn run(&self, run: &str, job: Job, seed: u64) -> Run {
        Run::new(name_of_run(run), job, seed, warrant(), NOW).opened(&self.opening)
    }

    /// How it opened.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Says to a site that a run of a job begins, and asks the first question.
    pub fn describe(&self, worker: &mut Worker, run: &str, job: &Job, seed: u64) -> Answer {
        let begin = self.begin(run, job, seed);
        federation::begin_and_ask(worker, begin, job.sites.len(), Request::Describe)
    }
}

fn begin(run: &str, job: String, seed: u64, opening: Option<&Opening>) -> Begin {
    Begin {
        run: name_of_run(run),
        job,
        seed,
        warrant: warrant(),
        opening: opening.map(|opening| opening.run.clone()),
    }
}

/// The researcher's word, by the certificate that the studies here name, which nobody has.
fn warrant() -> Warrant {
    let party = Party::Operator(RESEARCHER);
    let certificate = format!("{party:?}").into_bytes();
    assert_eq!(CertificateFingerprint::of(&certificate), nobody(party));
    Warrant {
        chain: vec![certificate],
        ..Warrant::default()
    }
}
