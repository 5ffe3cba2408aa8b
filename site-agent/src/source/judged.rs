//! Pairs of patients that a physician has judged: a CSV file with the columns `patient`, `other` and `similar`, and any others. It never
//! leaves the site. Problems name lines and no patient.

use super::frozen::FrozenRows;
use super::misfit::Cause;
use super::problem::{CohortProblem, CohortProblems, ROWS_NAMED_MAX, Rows};
use crate::config::SourceConfig;
use csv::{ByteRecord, ReaderBuilder};
use similarity::learn::unpsl::JudgedPairs;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes of a file of pairs: a million pairs of long identifiers.
const LENGTH_MAX: u64 = 64 << 20;

const PATIENT: &str = "patient";
const OTHER: &str = "other";
const SIMILAR: &str = "similar";
const SIMILAR_MEANT: &str = "yes or no (or true, false, 1, 0)";
const PATIENT_MEANT: &str = "an identifier of the site's patients";

/// Judged pairs, as the file has them.
pub struct Judged {
    /// What problems call the file.
    source: String,
    rows: Vec<Row>,
}

struct Row {
    line: u64,
    pair: [Vec<u8>; 2],
    is_similar: bool,
}

/// The pairs of a cohort, and lines of pairs whose patients are not in it.
pub struct Placed {
    /// The pairs.
    pub pairs: JudgedPairs,
    /// What is said of the others.
    pub remark: Option<CohortProblem>,
}

/// Lines by what is wrong with them, with the column and what is wanted.
#[derive(Default)]
struct Faults(BTreeMap<(&'static str, &'static str, &'static str), Vec<u64>>);

impl Faults {
    fn note(&mut self, line: u64, column: &'static str, found: &'static str, wanted: &'static str) {
        self.0
            .entry((column, found, wanted))
            .or_default()
            .push(line);
    }

    fn problems(self, source: &str) -> Vec<CohortProblem> {
        let faults = self.0.into_iter();
        let problem = |((column, found, wanted), lines): (_, Vec<u64>)| {
            let rows = Rows {
                word: "line",
                count: lines.len() as u64,
                first: lines.into_iter().take(ROWS_NAMED_MAX).collect(),
            };
            CohortProblem::of_column(source, column, None, Cause::Values, found, wanted).at(rows)
        };
        faults.map(problem).collect()
    }
}

impl Judged {
    /// Reads the site's file.
    ///
    /// # Errors
    /// [`CohortProblems`] where there is no file, its patients have no identifiers, or it does not fit.
    pub fn of_site(source: &SourceConfig) -> Result<Self, CohortProblems> {
        let (bytes, name) = Self::bytes_of_site(source)?;
        Self::read(&bytes, &name)
    }

    /// The bytes of the site's file, and what problems call it.
    ///
    /// # Errors
    /// As [`Judged::of_site`], but for what the file holds.
    pub fn bytes_of_site(source: &SourceConfig) -> Result<(Vec<u8>, String), CohortProblems> {
        let problem = |name: &str, found: &str, wanted: &str| {
            let problem = CohortProblem::of_source(name, Cause::Source, found, wanted);
            CohortProblems::new(vec![problem])
        };
        let Some(path) = &source.pairs else {
            let wanted = "[pairs] with file = \"PAIRS.csv\" in site.toml";
            return Err(problem("judged pairs", "no file", wanted));
        };
        let name = path.display().to_string();
        if source.patient.is_none() {
            let wanted = "patient = \"COLUMN\" in [source], whose identifiers the pairs name";
            return Err(problem(&name, "patients without identifiers", wanted));
        }
        let length = std::fs::metadata(path).map(|file| file.len());
        match length {
            Ok(length) if length > LENGTH_MAX => {
                let (found, wanted) = (format!("{length} bytes"), format!("at most {LENGTH_MAX}"));
                Err(problem(&name, &found, &wanted))
            }
            _ => match std::fs::read(path) {
                Ok(bytes) => Ok((bytes, name)),
                Err(error) => Err(problem(
                    &name,
                    &error.to_string(),
                    "a file that can be read",
                )),
            },
        }
    }

    /// Reads the bytes of a file that problems call `source`.
    ///
    /// # Errors
    /// All problems of the file at once: an absent column, a judgement that is neither yes nor no, a patient paired with itself, two
    /// judgements of one pair.
    pub fn read(bytes: &[u8], source: &str) -> Result<Self, CohortProblems> {
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(bytes);
        let one = |problem| CohortProblems::new(vec![problem]);
        let unreadable = |found: &str| {
            let wanted = "a CSV file with the columns patient, other and similar";
            one(CohortProblem::of_source(
                source,
                Cause::Source,
                found,
                wanted,
            ))
        };
        let header = reader.byte_headers().map_err(|_| unreadable("no CSV"))?;
        let place = |wanted: &str| {
            let mut names = header.iter();
            names.position(|name| name.trim_ascii() == wanted.as_bytes())
        };
        let columns = [PATIENT, OTHER, SIMILAR].map(place);
        let [Some(patient), Some(other), Some(similar)] = columns else {
            return Err(unreadable("a header without one of these columns"));
        };
        let (mut rows, mut faults) = (Vec::new(), Faults::default());
        let mut record = ByteRecord::new();
        while reader
            .read_byte_record(&mut record)
            .map_err(|_| unreadable("a line that is no CSV"))?
        {
            let line = record.position().map_or(0, csv::Position::line);
            let field = |place: usize| record.get(place).unwrap_or_default().trim_ascii();
            let pair = [field(patient), field(other)];
            if pair.iter().any(|one| one.is_empty()) {
                faults.note(
                    line,
                    PATIENT,
                    "a pair without one of its patients",
                    PATIENT_MEANT,
                );
                continue;
            }
            if pair[0] == pair[1] {
                faults.note(
                    line,
                    OTHER,
                    "a patient paired with itself",
                    "another patient",
                );
                continue;
            }
            match judgement(field(similar)) {
                Some(is_similar) => rows.push(Row {
                    line,
                    pair: pair.map(<[u8]>::to_vec),
                    is_similar,
                }),
                None => faults.note(line, SIMILAR, "another word", SIMILAR_MEANT),
            }
        }
        contradictions(&rows, &mut faults);
        let problems = faults.problems(source);
        match problems.is_empty() {
            true => Ok(Self {
                source: source.to_owned(),
                rows,
            }),
            false => Err(CohortProblems::new(problems)),
        }
    }

    /// Whether each patient of a pair is one of these rows, of which `source` says how a patient is named.
    ///
    /// # Errors
    /// As [`Self::among`].
    pub fn check(&self, rows: &FrozenRows, source: &SourceConfig) -> Result<(), CohortProblems> {
        let wanted: HashSet<&Vec<u8>> = self.rows.iter().flat_map(|row| &row.pair).collect();
        let mut known: HashSet<Vec<u8>> = HashSet::new();
        let visited = rows.identifiers(source, &mut |_, named| {
            let named = named.iter().map(|one| one.trim_ascii().to_vec());
            known.extend(named.filter(|one| wanted.contains(one)));
        });
        visited.map_err(|damaged| {
            let (called, _) = super::called(source);
            CohortProblems::new(vec![damaged.problem(&called)])
        })?;
        self.among(&known)
    }

    /// Whether each patient of a pair is one of these.
    ///
    /// # Errors
    /// The lines of those who are not.
    pub fn among(&self, known: &HashSet<Vec<u8>>) -> Result<(), CohortProblems> {
        let mut faults = Faults::default();
        for row in &self.rows {
            for (column, id) in [PATIENT, OTHER].into_iter().zip(&row.pair) {
                if !known.contains(id) {
                    let wanted = "an identifier of a patient with an outcome of the study";
                    faults.note(row.line, column, "an unknown patient", wanted);
                }
            }
        }
        let problems = faults.problems(&self.source);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(CohortProblems::new(problems)),
        }
    }

    /// The pairs of a cohort whose patients have these identifiers, in its order.
    ///
    /// # Errors
    /// One problem, where its pairs are not pairs of two patients.
    pub fn place<'i>(
        &self,
        identifiers: impl ExactSizeIterator<Item = &'i [u8]>,
    ) -> Result<Placed, CohortProblems> {
        let patients = identifiers.len();
        let places: HashMap<&[u8], usize> = identifiers
            .enumerate()
            .map(|(place, id)| (id, place))
            .collect();
        let (mut pairs, mut faults) = (Vec::with_capacity(self.rows.len()), Faults::default());
        for row in &self.rows {
            let [one, other] = [0, 1].map(|end: usize| places.get(row.pair[end].as_slice()));
            match (one, other) {
                (Some(one), Some(other)) => pairs.push(([*one, *other], row.is_similar)),
                _ => {
                    let wanted = "patients of the cohort; these pairs are excluded";
                    faults.note(
                        row.line,
                        PATIENT,
                        "a patient who is not in the cohort",
                        wanted,
                    );
                }
            }
        }
        let pairs = JudgedPairs::new(patients, pairs).map_err(|error| {
            let found = error.to_string();
            let wanted = "each pair once";
            let problem = CohortProblem::of_source(&self.source, Cause::Values, &found, wanted);
            CohortProblems::new(vec![problem])
        })?;
        let remark = faults.problems(&self.source).pop();
        Ok(Placed { pairs, remark })
    }
}

/// Whether a word says similar.
fn judgement(word: &[u8]) -> Option<bool> {
    match word.to_ascii_lowercase().as_slice() {
        b"yes" | b"true" | b"1" => Some(true),
        b"no" | b"false" | b"0" => Some(false),
        _ => None,
    }
}

/// Notes pairs that one line calls similar and another does not, whichever patient comes first.
fn contradictions(rows: &[Row], faults: &mut Faults) {
    let mut first: HashMap<[&[u8]; 2], &Row> = HashMap::new();
    for row in rows {
        let [one, other] = [row.pair[0].as_slice(), row.pair[1].as_slice()];
        let earlier = first.entry([one.min(other), one.max(other)]).or_insert(row);
        if earlier.is_similar != row.is_similar {
            let found = "the opposite of an earlier line on the same pair";
            for line in [earlier.line, row.line] {
                faults.note(line, SIMILAR, found, "one judgement of a pair");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let read = Judged::read(text.as_bytes(), "pairs.csv");
        read.err()
            .map_or_else(String::new, |problems| problems.to_string())
    }

    #[test]
    fn every_problem_of_a_file_of_pairs_is_named_by_line_and_no_patient_is() {
        let text = "patient,other,similar,who\nann,bob,yes,x\nbob,ann,no,y\ncid,cid,no,x\ncid,,no,x\nann,cid,maybe,x\n";
        let problems = said(text);
        for wanted in [
            "column \"other\", line 4: found a patient paired with itself",
            "column \"patient\", line 5: found a pair without one of its patients",
            "column \"similar\", line 6: found another word, wanted yes or no",
            "column \"similar\", lines 2, 3: found the opposite of an earlier line on the same pair",
        ] {
            assert!(problems.contains(wanted), "{problems}");
        }
        for name in ["ann", "bob", "cid", "maybe"] {
            assert!(!problems.contains(name), "{problems}");
        }
    }

    #[test]
    fn a_file_without_one_of_the_columns_is_refused() {
        assert!(said("patient,similar\na,1\n").contains("a header without one of these columns"));
        assert!(said("").contains("a header without"));
    }

    #[test]
    fn pairs_are_placed_in_the_cohort_and_others_are_remarked_by_line() {
        let text = "similar,other,patient\n1,b,a\n0,c,a\n1,z,c\n1,a,b\n";
        let judged = Judged::read(text.as_bytes(), "pairs.csv").unwrap();
        let identifiers: [&[u8]; 3] = [b"c", b"a", b"b"];
        let placed = judged.place(identifiers.into_iter()).unwrap();
        assert_eq!(placed.pairs.pairs(), [([0, 1], false), ([1, 2], true)]);
        let remark = placed.remark.unwrap().to_string();
        assert!(remark.contains("line 4"), "{remark}");
        let owned = identifiers.iter().map(|one| one.to_vec()).collect();
        let unknown = judged.among(&owned).unwrap_err().to_string();
        assert!(unknown.contains("column \"other\", line 4"), "{unknown}");
    }
}
