//! What `similar` and `predict` say of one patient, for a page at the bedside. The run, the cohort and what predicts are kept, so that a
//! second question is answered at once.

use super::predict::{self, Learned};
use super::setting::{Asked, Setting};
use super::similar::{self, page};
use super::{CasesError, shown};
use crate::cli::{By, Cohort, Patients, Predict, Where};
use protocol::cohort::{Feature, Value};
use protocol::time::Timestamp;
use report::{LocalFigure, OnMap, Part};
use similarity::cohort::Outcome;
use similarity::uses::cases::usual_distances;
use similarity::uses::map::Map;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The file of the cases.
const TABLE: &str = "similar.csv";
/// Points of a map, at most; they are taken at equal steps.
const POINTS_MAX: usize = 1_500;

/// How long pages wait for what predicts, from when it began to learn.
const LEARNING: Duration = Duration::from_secs(4);
/// Between two looks whether it is there.
const LOOK: Duration = Duration::from_millis(10);
const STILL_LEARNING: &str =
    "it is being learned from all patients of this hospital; load this page again in a while";

/// A run and the cohort, ready for questions.
pub(crate) struct Bedside {
    setting: Setting,
    place: Where,
    /// When the patients were read, in milliseconds since 1970.
    read: AtomicU64,
    usual: Mutex<BTreeMap<usize, Arc<Vec<f64>>>>,
    map: OnceLock<Result<Map, String>>,
    learned: OnceLock<Result<Learned, String>>,
    /// When learning began.
    began: OnceLock<Instant>,
}

/// Who is asked about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Who {
    /// Identifier in the cohort; none of a patient who is not there.
    pub(crate) known: Option<String>,
    /// A value for each feature; none where those of the cohort count.
    pub(crate) values: Option<Vec<Value>>,
}

/// What is said of a patient.
pub(crate) struct Answered {
    pub(crate) title: String,
    /// The answer.
    pub(crate) answer: Vec<String>,
    /// How the similar fared, and what is predicted.
    pub(crate) outcomes: Vec<Part>,
    /// How sure that is.
    pub(crate) sure: Vec<String>,
    /// What became of such predictions.
    pub(crate) calibration: Vec<Part>,
    /// Who is similar and why.
    pub(crate) reasons: Vec<Part>,
    /// What is to be known before it is believed.
    pub(crate) notes: Vec<String>,
    /// One row per similar patient.
    pub(crate) csv: Vec<u8>,
    /// What a changed value may change.
    pub(crate) gist: Gist,
    /// The patient's value of each feature.
    pub(crate) values: Vec<Value>,
}

/// An answer in short.
pub(crate) struct Gist {
    pub(crate) outcomes: String,
    pub(crate) predicted: String,
    pub(crate) unusual: String,
    /// Rows of the similar.
    pub(crate) similar: Vec<usize>,
}

impl Bedside {
    /// Opens a run of the site, and reads its patients.
    pub(crate) fn open(
        config: &Path,
        run: &str,
        by: By,
        now: Timestamp,
    ) -> Result<Self, CasesError> {
        let place = Where {
            of: Patients {
                run: run.to_owned(),
                cohort: Cohort {
                    config: Some(config.to_owned()),
                    data: None,
                    id: None,
                },
            },
            by,
            ridge: None,
        };
        Ok(Self {
            setting: Setting::open(&place)?,
            place,
            read: AtomicU64::new(now.0),
            usual: Mutex::default(),
            map: OnceLock::new(),
            learned: OnceLock::new(),
            began: OnceLock::new(),
        })
    }

    /// When the patients were read.
    pub(crate) fn read(&self) -> Timestamp {
        Timestamp(self.read.load(Ordering::Relaxed))
    }

    /// What was opened later takes this one's place, unless it would say the same: then this one, and all that it has learned, stays.
    pub(crate) fn or(self: &Arc<Self>, later: Self) -> Arc<Self> {
        let (own, new) = (&self.setting, &later.setting);
        let is_same = own.digest == new.digest && own.remarks == new.remarks;
        // A metric of the hospital's own may have been adapted again.
        match is_same && self.place.by != By::Personal {
            true => {
                self.read.store(later.read().0, Ordering::Relaxed);
                Arc::clone(self)
            }
            false => Arc::new(later),
        }
    }

    /// What is said of a patient, by the `k` most similar.
    pub(crate) fn answer(self: &Arc<Self>, who: &Who, k: usize) -> Result<Answered, CasesError> {
        let setting = &self.setting;
        let (asked, values) = self.asked(who)?;
        similar::check_count(setting, &asked, k)?;
        let answer = similar::answer(setting, &asked, k, &self.usual(k));
        let one = &answer.queries[0];
        let label = &setting.job.cohort.outcome.label;
        let mut lead = page::lead(one, label);
        lead.push(format!(
            "The whole cohort of {}: {}.",
            setting.patients.len(),
            answer.whole_sentence
        ));
        let mut notes = setting.remarks.clone();
        let mut outcomes = page::outcomes(setting, &answer, one)?;
        let (mut sure, mut calibration) = (Vec::new(), Vec::new());
        let mut predicted = String::new();
        match self.predict(&asked, k) {
            Ok(found) => {
                lead.push(format!("Predicted: {}.", found.predicted));
                outcomes.extend(found.chances);
                sure.extend(found.sure);
                calibration = found.calibration;
                let fresh = found.remarks.into_iter();
                notes.extend(fresh.filter(|remark| !setting.remarks.contains(remark)));
                predicted = found.predicted;
            }
            Err(error) => lead.push(format!("No prediction: {error}.")),
        }
        sure.extend(page::how_sure(one));
        let mut reasons = page::reasons(setting, &asked, 0, one).to_vec();
        if let Some((figure, share)) = self.map(&asked, one)? {
            reasons.push(Part::Figure(figure));
            notes.push(format!(
                "the two dimensions of the map hold {} of the differences between patients",
                shown::percent(share)
            ));
        }
        Ok(Answered {
            title: match one.patient.as_str() {
                "" => "Patients similar to this patient".to_owned(),
                name => format!("Patients similar to {name}"),
            },
            gist: Gist {
                outcomes: one.sentence.clone(),
                predicted,
                unusual: similar::unusual(one)
                    .trim_end()
                    .trim_start_matches("How unusual: ")
                    .to_owned(),
                similar: one.rows.clone(),
            },
            csv: table(setting, &answer).map_err(|source| CasesError::Write {
                path: TABLE.into(),
                source,
            })?,
            answer: lead,
            outcomes,
            sure,
            calibration,
            reasons,
            notes: notes.iter().map(|note| report::as_sentence(note)).collect(),
            values,
        })
    }

    /// Whether there is such a patient, and so many others.
    pub(crate) fn check(&self, who: &Who, k: usize) -> Result<(), CasesError> {
        let (asked, _) = self.asked(who)?;
        similar::check_count(&self.setting, &asked, k)
    }

    /// The patient's value of each feature.
    pub(crate) fn values(&self, who: &Who) -> Result<Vec<Value>, CasesError> {
        Ok(self.asked(who)?.1)
    }

    /// The features in which two patients differ: label, the first's value, the second's.
    pub(crate) fn changed(
        &self,
        before: &[Value],
        after: &[Value],
    ) -> Result<Vec<[String; 3]>, CasesError> {
        let [before, after] =
            [before, after].map(|values| self.setting.described("", values, None));
        let (before, after) = (before?.columns, after?.columns);
        let features = self.setting.job.cohort.features.iter();
        let row = |((feature, one), other): ((&Feature, _), _)| {
            let in_words =
                |column: &similarity::cohort::Column| shown::value(feature, &column.values, 0);
            [feature.label_with_unit(), in_words(one), in_words(other)]
        };
        let rows = features.zip(&before).zip(&after).map(row);
        Ok(rows.filter(|[_, one, other]| one != other).collect())
    }

    fn asked(&self, who: &Who) -> Result<(Asked, Vec<Value>), CasesError> {
        let setting = &self.setting;
        let row = who
            .known
            .as_ref()
            .map(|id| setting.rows(std::slice::from_ref(id)));
        let row = row.transpose()?.and_then(|rows| rows.first().copied());
        match (&who.values, row) {
            (Some(values), row) => {
                let name = who.known.as_ref().map(|id| format!("{id} (changed)"));
                let name = name.unwrap_or_default();
                Ok((setting.described(&name, values, row)?, values.clone()))
            }
            (None, Some(row)) => Ok((setting.known(&[row])?, setting.values(row))),
            // Nobody asks about nobody: a form gives one or the other.
            (None, None) => Err(CasesError::NoPatient {
                patients: setting.patients.len(),
                named: setting.patients.are_named(),
            }),
        }
    }

    fn usual(&self, k: usize) -> Arc<Vec<f64>> {
        let known = || self.usual.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(usual) = known().get(&k) {
            return Arc::clone(usual);
        }
        let Setting {
            comparison, placed, ..
        } = &self.setting;
        let usual = Arc::new(usual_distances(comparison, placed, k));
        known().insert(k, Arc::clone(&usual));
        usual
    }

    /// Predicts, once what predicts has been learned: nobody waits long for that, because many patients take their time.
    fn predict(self: &Arc<Self>, asked: &Asked, k: usize) -> Result<predict::Prediction, String> {
        let mut is_first = false;
        let began = self.began.get_or_init(|| {
            is_first = true;
            Instant::now()
        });
        if is_first {
            let own = Arc::clone(self);
            std::thread::spawn(move || {
                // Of its own: questions that come meanwhile find the threads of all others free.
                let threads = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                let learn = || Learned::new(own.setting.clone(), &arguments(&own.place));
                let learned = match threads {
                    Ok(threads) => threads.install(learn),
                    Err(_) => learn(),
                };
                let learned = learned.map_err(|error| report::with_causes(&error));
                own.learned.get_or_init(|| learned);
            });
        }
        let learned = loop {
            match self.learned.get() {
                Some(learned) => break learned,
                None if began.elapsed() > LEARNING => return Err(STILL_LEARNING.to_owned()),
                None => std::thread::sleep(LOOK),
            }
        };
        let learned = learned.as_ref().map_err(Clone::clone)?;
        let found = learned.of_patient(asked, k);
        found.map_err(|error| report::with_causes(&error))
    }

    /// The cohort with the patient in it, and how much of the differences it holds; none where LAPACK fails.
    fn map(
        &self,
        asked: &Asked,
        one: &similar::OneQuery,
    ) -> Result<Option<(LocalFigure, f64)>, CasesError> {
        let similar = one.rows.as_slice();
        let Setting {
            comparison, placed, ..
        } = &self.setting;
        let map = self.map.get_or_init(|| {
            let map = Map::new(comparison, placed);
            map.map_err(|error| error.to_string())
        });
        let Ok(map) = map else { return Ok(None) };
        let step = map.places.len().div_ceil(POINTS_MAX).max(1);
        let rows: Vec<usize> = (0..map.places.len())
            .filter(|row| row % step == 0 || similar.contains(row))
            .collect();
        let places = |rows: &[usize]| rows.iter().map(|row| map.places[*row]).collect::<Vec<_>>();
        let (points, near) = (places(&rows), places(similar));
        let marked = OnMap {
            place: map.place(comparison, &asked.placed, 0),
            name: page::named(one),
            similar: &near,
        };
        let specification = &self.setting.job.cohort.outcome;
        let svg = match self.setting.cohort.outcome().select(&rows) {
            Outcome::Classes { codes, levels } => {
                report::scatter_by_group(&points, &codes.to_vec(), &levels, Some(&marked))
            }
            Outcome::Numeric(values) => {
                let name = specification.label_with_unit();
                report::scatter_by_value(&points, &values.to_vec(), &name, Some(&marked))
            }
            Outcome::Survival { event, .. } => {
                let groups: Vec<u32> = event.iter().map(|seen| u32::from(*seen)).collect();
                let names =
                    ["censored", "event"].map(|group| specification.group_label(group).to_owned());
                report::scatter_by_group(&points, &groups, &names, Some(&marked))
            }
        };
        let figure = LocalFigure {
            title: "Map of the cohort",
            svg: svg?,
            caption: CAPTION,
        };
        Ok(Some((figure, map.share)))
    }
}

const CAPTION: &str = "Each mark is a patient, in the shape and colour of its outcome. Who lies near each other is similar, as far as two \
    dimensions can show it.";

/// As the command line would ask, with its defaults.
fn arguments(place: &Where) -> Predict {
    Predict {
        by: place.by,
        ..Predict::of_run(&place.of)
    }
}

/// The cases as a table, without what describes its columns: a page gives one file.
fn table(setting: &Setting, answer: &similar::Answer) -> io::Result<Vec<u8>> {
    let [(_, rows), _] = similar::csv(setting, answer)?.parts(TABLE)?;
    Ok(rows)
}
