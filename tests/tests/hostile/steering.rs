//! A hospital that steers: it follows the protocol with its own keys and masks, and adds numbers of its choice to what it says. The sum
//! is then what it likes, and so are the coefficients that everybody is asked about next. It subtracts its own numbers from the sums and
//! looks for the patients of the others.

use crate::masks::{Court, Sites};
use kindred_tests::deployment::SITES;
use kindred_tests::programs::Home;
use ndarray::{Array1, Array2};
use privacy::sums::Words;
use privacy::{Covered, Disclosure};
use protocol::failure::Code;
use protocol::message::regression::{Answer as Told, Request as Question, Sums};
use protocol::message::{Answer, Reply, Request, ToSite};
use protocol::progress::Ending;
use site_agent::books::{ledger, secrets};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use wire::{Said, SiteKeys};

const PATIENTS: &str = "north=60,south=60,east=60,west=60";
/// What the liar weighs more than all patients together.
const WEIGHT: f64 = 1e12;
/// What the liar does not know of a patient, and the coefficient that it looks at.
const SECRET: &str = "second_2";
const HIDDEN: usize = 2;

fn job(extra: &str) -> String {
    format!(
        "name = \"steered\"\nmethod = \"regression\"\nsites = [\"north\", \"south\", \"east\", \"west\"]\n{extra}\
         [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"positive\"]\nnegative = [\"negative\"]\n\
         [[features]]\nname = \"first_1\"\nkind = \"numeric\"\n[[features]]\nname = \"{SECRET}\"\nkind = \"numeric\"\n[regression]\n"
    )
}

/// Coefficients that the liar wants everybody to be asked about, in order.
type Wanted = Vec<[f64; 3]>;

/// What the liar has added to its answers, by exchange, and what was asked there.
type Lies = Rc<RefCell<BTreeMap<u32, (Vec<f64>, Words)>>>;

/// The sums that make Newton's method go from `asked` to `wanted`, whatever all patients say.
fn lie(asked: &[f64], wanted: [f64; 3], so_far: usize) -> Answer {
    let mut sums = Sums::zero(asked.len());
    let rises = f64::from(u32::try_from(so_far).unwrap());
    sums.log_likelihood = 1e9 * rises;
    sums.gradient = Array1::from(wanted.to_vec()) - Array1::from(asked.to_vec());
    sums.gradient *= WEIGHT;
    sums.information = Array2::eye(asked.len()) * WEIGHT;
    Answer::Regression(Told::Likelihood(sums))
}

/// The keys of a site, which whoever has its folder has.
fn keys(folder: &Path, digest: &str) -> SiteKeys {
    let secret = ledger::secret(folder, "keys").unwrap();
    let mut own = [0; 32];
    for (place, part) in own.chunks_mut(8).enumerate() {
        let number = secret(format!("{place}/{digest}").as_bytes());
        part.copy_from_slice(&number.to_be_bytes());
    }
    let kept = secrets::read(folder, digest).unwrap().unwrap();
    SiteKeys::new(digest, &own, kept).unwrap()
}

/// Has west add to its covered answers what `added` says to a question, and sign that.
pub(crate) fn liar(
    court: &mut Court,
    mut added: impl FnMut(&Request, &Reply<Answer>) -> Option<Words> + 'static,
) {
    let folder = court.home.join("sites/west");
    let (digest, keyed) = (court.digest.clone(), court.keyed.clone());
    court.forge = Box::new(move |site, request, reply: &mut Reply<Answer>| {
        let Answer::Covered(covered) = &reply.answer else {
            return;
        };
        let own = site.as_str() == "west";
        let Some(added) = own.then(|| added(request, reply)).flatten() else {
            return;
        };
        let mut words = covered.words.clone();
        words.add(&added).unwrap();
        let answer = Answer::Covered(Covered {
            words,
            ..covered.clone()
        });
        let said = Said {
            run: &digest,
            exchange: reply.exchange,
            answer: &wire::digest_of(&answer),
        };
        reply.signature = keys(&folder, &keyed).sign(&said);
        reply.answer = answer;
    });
}

/// What makes everybody be asked about `wanted`, one after the other.
fn steering(
    wanted: Wanted,
    lies: Lies,
) -> impl FnMut(&Request, &Reply<Answer>) -> Option<Words> + 'static {
    move |request, reply| {
        let Request::Regression(Question::Evaluate(point)) = request else {
            return None;
        };
        let mut lies = lies.borrow_mut();
        let so_far = lies.len();
        let next = wanted.get(so_far).copied().unwrap_or([0.0; 3]);
        let added = Words::of(&mut lie(&point.at, next, so_far)).unwrap();
        lies.insert(reply.exchange, (point.at.to_vec(), added.clone()));
        Some(added)
    }
}

/// A question, and the gradient of all patients there: what the liar reads of a run.
struct Heard {
    at: Vec<f64>,
    gradient: Array1<f64>,
}

/// Steers a run through `wanted`; gives what it heard, and the rules by which hospitals refused.
fn steer(court: &mut Court, wanted: Wanted) -> (Vec<Heard>, Vec<String>) {
    let lies = Lies::default();
    liar(court, steering(wanted, Rc::clone(&lies)));
    heard(court, &lies)
}

/// Plays a run to its end; gives the sums without the lies, where there are any, and the rules by which hospitals refused.
fn heard(court: &mut Court, lies: &Lies) -> (Vec<Heard>, Vec<String>) {
    let mut sums: BTreeMap<u32, Words> = BTreeMap::new();
    let said = court.play(|site, message| {
        if let (ToSite::Closed(closed), "west") = (&message, site.as_str()) {
            let told = closed.record.answers.iter().flatten();
            for answer in told {
                if let Answer::Covered(covered) = answer
                    && answer.kind() == "likelihood"
                {
                    sums.entry(closed.record.exchange)
                        .and_modify(|sum| sum.add(&covered.words).unwrap())
                        .or_insert_with(|| covered.words.clone());
                }
            }
        }
        vec![message]
    });
    let refused = said.iter().filter_map(|said| match &said.answer {
        Answer::Refused(refusal) => Some(refusal.rule.clone()),
        _ => None,
    });
    let refused = refused.collect();
    let lies = lies.borrow();
    let heard = sums.into_iter().filter_map(|(exchange, sum)| {
        let (at, added) = lies.get(&exchange)?;
        let mut told = Answer::Regression(Told::Likelihood(Sums::zero(at.len())));
        minus(&sum, added).read_into(&mut told).unwrap();
        let Answer::Regression(Told::Likelihood(sums)) = told else {
            panic!("sums");
        };
        Some(Heard {
            at: at.clone(),
            gradient: sums.gradient,
        })
    });
    (heard.collect(), refused)
}

fn minus(sum: &Words, own: &Words) -> Words {
    let pairs = sum.as_slice().iter().zip(own.as_slice());
    Words::received(pairs.map(|(sum, own)| sum.wrapping_sub(*own)).collect())
}

/// A patient of a hospital that does not lie: what the liar knows, what it looks for, both standardised, and the class.
struct Patient {
    known: f64,
    secret: f64,
    own: bool,
}

/// A run of a job on tables that are changed before anybody approves.
fn on(change: impl FnOnce(&Home), text: &str) -> Court {
    let sites = Sites::of(PATIENTS);
    change(&sites.home);
    sites.open(text)
}

/// Gives every patient all values, so that it is plain what each adds to a sum.
fn complete(home: &Home) {
    for site in SITES {
        let path = home.join(&format!("data/{site}.csv"));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().enumerate();
        let mut complete = lines.next().unwrap().1.to_owned();
        for (row, line) in lines {
            let filled = format!("{:.4}", f64::from(u32::try_from(row).unwrap()).sin());
            let values = line.split(',').map(|value| match value {
                "" => filled.as_str(),
                value => value,
            });
            complete.push('\n');
            complete.push_str(&values.collect::<Vec<_>>().join(","));
        }
        std::fs::write(&path, complete + "\n").unwrap();
    }
}

fn column(home: &Home, site: &str, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(home.join(&format!("data/{site}.csv"))).unwrap();
    let mut lines = text.lines();
    let place = lines.next().unwrap().split(',').position(|one| one == name);
    let place = place.unwrap();
    let values = lines.map(|line| line.split(',').nth(place).unwrap().to_owned());
    values.collect()
}

fn patients(home: &Home) -> Vec<Patient> {
    let sites = SITES;
    let standardised = |name: &str| {
        let values = sites.iter().flat_map(|site| column(home, site, name));
        let values: Vec<f64> = values.map(|value| value.parse().unwrap()).collect();
        let values = Array1::from(values);
        let mean = values.mean().unwrap();
        (&values - mean) / values.std(0.0)
    };
    let (known, secret) = (standardised("first_1"), standardised(SECRET));
    let own = sites.iter().flat_map(|site| {
        let rows = column(home, site, "class");
        rows.into_iter().map(|_| *site == "west")
    });
    let rows = known.iter().zip(&secret).zip(own);
    rows.map(|((known, secret), own)| Patient {
        known: *known,
        secret: *secret,
        own,
    })
    .collect()
}

/// Borders so near each other that one patient alone is between two of them.
fn steep() -> Wanted {
    let border = |step: u32| 1.0 + 0.06 * f64::from(step);
    let at = |border: f64| [-1e7 * border, 1e7, 0.0];
    (0..28).map(|step| at(border(step))).collect()
}

/// Patients of others whose value follows from two sums: those between two borders where there is one alone.
fn read(heard: &[Heard], patients: &[Patient]) -> usize {
    let border = |heard: &Heard| -heard.at[0] / heard.at[1];
    let pairs = heard.windows(2).filter(|pair| pair[0].at[1] != 0.0);
    let right = pairs.filter(|pair| {
        let [from, to] = [border(&pair[0]), border(&pair[1])];
        let between = |one: &&Patient| one.known > from && one.known <= to;
        let between: Vec<&Patient> = patients.iter().filter(between).collect();
        let found = pair[1].gradient[HIDDEN] - pair[0].gradient[HIDDEN];
        between.len() == 1 && !between[0].own && (found - between[0].secret).abs() < 1e-6
    });
    right.count()
}

/// Before there was a brake: 30 questions, and the rows of 8 patients of others to the last digit.
#[test]
fn a_hospital_that_asks_for_steep_coefficients_reads_no_row_and_uses_up_no_run() {
    let mut court = on(complete, &job("precision = \"exact\"\n"));
    let patients = patients(&court.home);
    let (heard, refused) = steer(&mut court, steep());
    let rows = read(&heard, &patients);
    println!("{} questions, {rows} rows, {refused:?}", heard.len());
    assert_eq!((heard.len(), rows), (1, 0));
    assert!(refused.is_empty(), "{refused:?}");
    must_be_void(&court);
}

/// The run ended by a sum that patients cannot have, and every hospital has noted that nothing came of it.
pub(crate) fn must_be_void(court: &Court) {
    let Some(Ending::Failed(failure)) = court.run.ending() else {
        panic!("{:?}", court.run.ending());
    };
    assert_eq!(failure.code, Code::Sum, "{}", failure.text);
    for site in SITES {
        let ledger = court.home.join(&format!("sites/{site}/ledger.jsonl"));
        let ledger = std::fs::read_to_string(ledger).unwrap();
        assert_eq!(ledger.matches("\"void\"").count(), 1, "{site}");
    }
}

/// Whoever says noise ends the run of all; before, after 20 such runs nobody could run anything over these patients.
#[test]
fn a_hospital_that_says_noise_ends_the_run_and_uses_up_no_run() {
    let mut court = Court::of(PATIENTS, &job(""));
    liar(&mut court, |request, reply| {
        match (request, &reply.answer) {
            (Request::Moments, Answer::Covered(covered)) => {
                let words = covered.words.as_slice().iter();
                let noise = words.map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c));
                Some(Words::received(noise.collect()))
            }
            _ => None,
        }
    });
    court.play(crate::masks::honest);
    must_be_void(&court);
}

/// Gives each patient a value of the known feature, and the class that a value has which is off by some noise.
fn rewrite(home: &Home, known: impl Fn(&str, f64) -> (f64, f64)) {
    for site in SITES {
        let path = home.join(&format!("data/{site}.csv"));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned));
        let head: Vec<String> = rows.next().unwrap().collect();
        let place = |name: &str| head.iter().position(|one| one == name).unwrap();
        let mut table = head.join(",") + "\n";
        for (row, values) in rows.enumerate() {
            let mut values: Vec<String> = values.collect();
            let (value, noise) = known(site, f64::from(u32::try_from(row).unwrap()));
            let class = if value + noise > 0.0 {
                "positive"
            } else {
                "negative"
            };
            values[place("first_1")] = format!("{value:.6}");
            values[place("class")] = class.to_owned();
            table += &(values.join(",") + "\n");
        }
        std::fs::write(&path, table).unwrap();
    }
}

#[test]
fn where_a_feature_parts_the_classes_by_itself_nobody_is_asked_more_and_a_ridge_has_an_end() {
    let endings = [
        ("", Ending::Completed),
        ("ridge = 40", Ending::Converged),
        ("ridge = \"auto\"", Ending::Converged),
    ];
    for (table, wanted) in endings {
        let prepare = |home: &Home| {
            complete(home);
            rewrite(home, |_, row| ((row * 1.3).sin() * 1.4, 0.0));
        };
        let mut court = on(prepare, &(job("") + table + "\n"));
        let (_, refused) = heard(&mut court, &Lies::default());
        println!("{table:?}: {refused:?}, {:?}", court.run.ending());
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(court.run.ending(), Some(&wanted));
    }
}

/// Coefficients that are gentle for all patients together can be steep for those of one hospital: it refuses.
#[test]
fn a_hospital_whose_own_patients_a_question_parts_refuses_it() {
    let prepare = |home: &Home| {
        complete(home);
        rewrite(home, |site, row| match site {
            "west" => ((row * 2.1).sin().signum() * 3.6, 0.0),
            _ => ((row * 1.3).sin() * 1.4, (row * 7.7).cos() * 2.2),
        });
    };
    let mut court = on(prepare, &job(""));
    let (_, refused) = heard(&mut court, &Lies::default());
    println!("{refused:?}, {:?}", court.run.ending());
    assert_eq!(refused, ["steepness"]);
    let Some(Ending::Failed(failure)) = court.run.ending() else {
        panic!("{:?}", court.run.ending());
    };
    assert!(failure.text.starts_with("west: "), "{}", failure.text);
}
