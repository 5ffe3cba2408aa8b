//! Promise: what a hospital says for a study's card is of all its patients, however many blocks they are read in, and what few of them hold
//! counts for nothing.

#![allow(clippy::unwrap_used)] // functions that tests share

mod sources;

use protocol::job::Job;
use protocol::message::card::{Answer as OfCard, Counts, Request as CardRequest};
use protocol::message::{Answer, ColumnHistogram, Request};
use protocol::study::{Study, nobody, pinned};
use similarity::numeric::seed::Seed;
use site_agent::config::SourceConfig;
use site_agent::method::Computation;
use site_agent::source::{CohortProblems, Freezing, FrozenPatients, Room, Snapshot, snapshot};
use sources::config;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Several blocks, the last of them short.
const PATIENTS: usize = 20_001;
const CELL_MIN: u64 = 10;

const STUDY: &str = r#"
name = "blocks"
title = "Blocks"
purpose = "A test"
until = "2100-01-01"
operators = ["researcher"]
renews = ["earlier"]
hospitals = ["north", "south", "east"]
methods = ["regression"]
limits = { runs = 1, rounds = 100, queries = 1 }

[[outcomes]]
name = "ill"
label = "Ill"
column = "ill"
kind = "binary"
positive = ["1"]
missing = ["7", "8"]

[[outcomes]]
name = "days"
label = "Days"
column = "days"
kind = "survival"
event = "dead"
event_values = ["1"]
horizon = 500

[[features]]
name = "x"
kind = "numeric"
range = [0, 120]
impute = "median"
missing = ["98", "99"]

[[features]]
name = "level"
kind = "categorical"
levels = ["a", "b", "z"]
"#;

/// A patient: the outcomes and the features, as the source has them.
struct Patient {
    ill: &'static str,
    days: Option<(usize, bool)>,
    x: Option<usize>,
    level: &'static str,
}

/// Most hold what is frequent. Of the codes, 7 and 98 are held by many, 8 and 99 by few; so is the level z.
fn patient(number: usize) -> Patient {
    let mixed = number.wrapping_mul(2_654_435_761) >> 7;
    let few = number % 6_000 == 5_990;
    Patient {
        ill: match (mixed % 10, number) {
            (_, 4_000..=4_002) => "8",
            (0, _) => "",
            (1, _) => "7",
            (2..=5, _) => "0",
            _ => "1",
        },
        days: (!mixed.is_multiple_of(10) && !mixed.is_multiple_of(3))
            .then_some((mixed % 700, mixed % 5 < 2)),
        x: match mixed % 9 {
            0 => None,
            1 => Some(98),
            _ if few => Some(99),
            _ => Some(mixed % 90),
        },
        level: match few {
            true => "z",
            false => ["a", "b"][mixed % 2],
        },
    }
}

impl Patient {
    /// Whether the patient has the first outcome, and which class.
    fn class(&self) -> Option<usize> {
        match self.ill {
            "0" => Some(0),
            "1" => Some(1),
            // What few hold is no code that means missing, and no 1.
            "8" => None,
            _ => None,
        }
    }

    /// The group of the second outcome, and the time within the horizon.
    fn survival(&self) -> Option<(usize, usize)> {
        self.days
            .map(|(days, dead)| (usize::from(!(dead && days <= 500)), days.min(500)))
    }

    fn is_enrolled(&self) -> bool {
        self.class().is_some() || self.days.is_some()
    }

    fn number(&self) -> Option<usize> {
        self.x.filter(|x| *x != 98)
    }
}

fn write(folder: &Path) -> SourceConfig {
    let mut table = "id,ill,days,dead,x,level\n".to_owned();
    for number in 0..PATIENTS {
        let own = patient(number);
        let (days, dead) = match own.days {
            Some((days, dead)) => (days.to_string(), u8::from(dead).to_string()),
            None => (String::new(), String::new()),
        };
        let x = own.x.map_or(String::new(), |x| x.to_string());
        writeln!(
            table,
            "p{number},{},{days},{dead},{x},{}",
            own.ill, own.level
        )
        .unwrap();
    }
    let path = folder.join("patients.csv");
    std::fs::write(&path, table).unwrap();
    source(folder)
}

fn source(folder: &Path) -> SourceConfig {
    config(
        folder,
        "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n",
        "[columns.x]\nrange = [0, 120]\n",
    )
}

fn study() -> Study {
    let study = pinned(STUDY, |party| Some(nobody(party))).unwrap();
    Study::parse(&study).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The card of the study at a site with this source, and how many patients have an outcome.
fn computation(source: &SourceConfig, folder: &Path) -> (Computation, usize) {
    let study = study();
    let job = Job::parse(&study.card()).unwrap_or_else(|errors| panic!("{errors}"));
    let frozen = Freezing::of_study(source, &study, CELL_MIN).read(Room::Memory);
    let frozen = frozen.unwrap_or_else(|problems| panic!("{problems}"));
    let bytes = snapshot::to_bytes(&frozen.rows).unwrap();
    let snapshot = Arc::new(Snapshot::of_bytes(bytes).unwrap());
    let enrolled = snapshot.enrolled(source, &study, CELL_MIN).unwrap();
    let cohort = snapshot.cohort(source, &job, CELL_MIN, &[]).unwrap();
    assert!(
        cohort.cohort.columns().is_empty(),
        "columns that nobody reads"
    );
    let made = Computation::new(
        job,
        Seed(1),
        cohort.with_enrolled(enrolled),
        folder.join("run"),
        &privacy::Rules::default(),
        Box::new(|_: &[u8]| 1),
    );
    let made = made.unwrap_or_else(|_| panic!("a computation"));
    (made, frozen.outcomes.len())
}

fn card(of: &mut Computation, request: CardRequest) -> Answer {
    let answer = of.answer(&Request::Card(request));
    answer.unwrap_or_else(|_| panic!("an answer"))
}

/// Answers of a hospital whose patients are read in many blocks.
#[test]
fn the_blocks_of_a_hospital_add_up_to_its_patients() {
    let folder = tempfile::tempdir().unwrap();
    let (mut made, patients) = computation(&write(folder.path()), folder.path());
    let all: Vec<Patient> = (0..PATIENTS).map(patient).collect();
    let all: Vec<&Patient> = all.iter().filter(|one| one.is_enrolled()).collect();
    assert_eq!(all.len(), patients);
    let everyone = Arc::new(Vec::new());
    let count =
        |is_in: &dyn Fn(&Patient) -> bool| all.iter().filter(|one| is_in(one)).count() as u64;

    let Answer::Card(OfCard::Parts(parts)) = card(&mut made, CardRequest::Part) else {
        panic!("found another answer");
    };
    let [ill, days, both] = parts[..] else {
        panic!("found {} patterns", parts.len());
    };
    let has_both = |one: &Patient| one.class().is_some() && one.days.is_some();
    assert_eq!(both, count(&has_both));
    assert_eq!(ill + both, count(&|one| one.class().is_some()));
    assert_eq!(days + both, count(&|one| one.days.is_some()));

    // Whoever has the second outcome alone is in no sum.
    for left_out in [&everyone, &Arc::new(vec![0b10])] {
        let is_in = |one: &Patient| left_out.is_empty() || one.class().is_some();
        let counts = CardRequest::Count(Arc::clone(left_out));
        let Answer::Card(OfCard::Counts(Counts { groups, parts })) = card(&mut made, counts) else {
            panic!("found another answer");
        };
        assert_eq!(parts.iter().sum::<u64>(), count(&is_in));
        let in_group = |one: &Patient, group: usize| match group {
            0 => is_in(one),
            1 | 2 => is_in(one) && one.class() == Some(group - 1),
            _ => is_in(one) && one.survival().is_some_and(|(own, _)| own == group - 3),
        };
        assert_eq!(groups.len(), 5);
        for (place, group) in groups.iter().enumerate() {
            let is_own = |one: &Patient| in_group(one, place);
            assert_eq!(group.patients, count(&is_own));
            let [x, level] = &group.features[..] else {
                panic!("found {} features", group.features.len());
            };
            let has = count(&|one| is_own(one) && one.number().is_some());
            assert_eq!((x.present(), x.missing), (has, group.patients - has));
            let of = |wanted| count(&|one| is_own(one) && one.level == wanted);
            // The third is listed, and few have it.
            assert_eq!(level.levels, [of("a"), of("b"), 0]);
            assert_eq!(level.missing, of("z"));
        }
        let sums = CardRequest::Sum {
            places: Arc::new(vec![0, 2, 8]),
            left_out: Arc::clone(left_out),
        };
        let Answer::Card(OfCard::Sums(sums)) = card(&mut made, sums) else {
            panic!("found another answer");
        };
        for (group, found) in [0, 1, 4].into_iter().zip(&sums.features) {
            let own = all.iter().filter(|one| in_group(one, group));
            let own: Vec<usize> = own.filter_map(|one| one.number()).collect();
            let squares = own.iter().map(|x| x * x).sum::<usize>();
            let wanted = [own.iter().sum::<usize>() as f64, squares as f64];
            assert_eq!(*found, wanted, "group {group}");
        }
        let own = all.iter().filter(|one| is_in(one));
        let time: usize = own
            .filter_map(|one| one.survival())
            .map(|(_, time)| time)
            .sum();
        assert_eq!(sums.outcomes, [vec![], vec![time as f64]]);
    }

    // Nobody says who is in which study, so that all are of this one alone.
    let compare = CardRequest::Compare(Arc::clone(&everyone));
    let Answer::Card(OfCard::Lots(lots)) = card(&mut made, compare) else {
        panic!("found another answer");
    };
    let of_this: Vec<u64> = lots.chunks(lots.len() / 3).map(|lots| lots[0]).collect();
    assert_eq!(of_this, [all.len() as u64, ill + both, days + both]);
    assert_eq!(lots.iter().sum::<u64>(), of_this.iter().sum::<u64>());

    let request = CardRequest::Histograms {
        outcome: 0,
        columns: Arc::new(vec![0]),
        left_out: everyone,
    };
    let Answer::Quantiles(histograms) = card(&mut made, request) else {
        panic!("found another answer");
    };
    let [ColumnHistogram { ends, counts }] = &histograms[..] else {
        panic!("found {} histograms", histograms.len());
    };
    assert_eq!(ends.len(), counts.len());
    let has = count(&|one| one.class().is_some() && one.number().is_some());
    assert_eq!(counts.iter().sum::<u64>(), has);
}

/// Sums over patients whose values have no exact sum, in the order of these blocks.
fn sums_of(blocks: &[usize]) -> Vec<f64> {
    const BLOCK: usize = 8_192;
    let folder = tempfile::tempdir().unwrap();
    let mut table = "id,ill,days,dead,x,level\n".to_owned();
    for number in blocks
        .iter()
        .flat_map(|block| block * BLOCK..(block + 1) * BLOCK)
    {
        let mixed = number.wrapping_mul(2_654_435_761) >> 7;
        let (x, ill) = (mixed % 1_201, mixed % 2);
        writeln!(table, "p{number},{ill},,,{}.{},a", x / 10, x % 10).unwrap();
    }
    std::fs::write(folder.path().join("patients.csv"), table).unwrap();
    let source = source(folder.path());
    let (mut made, _) = computation(&source, folder.path());
    let sums = CardRequest::Sum {
        places: Arc::new(vec![0, 2, 4]),
        left_out: Arc::default(),
    };
    let Answer::Card(OfCard::Sums(sums)) = card(&mut made, sums) else {
        panic!("found another answer");
    };
    sums.features.into_iter().flatten().collect()
}

#[test]
fn blocks_add_up_to_the_same_bits_in_any_order() {
    let orders = [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]];
    let sums = sums_of(&orders[0]);
    assert_eq!(sums.len(), 6);
    for order in orders {
        assert_eq!(sums_of(&order), sums);
    }
    // Sums of floating-point numbers go by their order.
    let alone: Vec<Vec<f64>> = (0..3).map(|block| sums_of(&[block])).collect();
    let floating = orders.map(|[first, second, third]| {
        let places = 0..sums.len();
        let sum = |place: usize| alone[first][place] + alone[second][place] + alone[third][place];
        places.map(sum).collect::<Vec<f64>>()
    });
    assert!(floating.iter().any(|sums| *sums != floating[0]));
}

/// What a site freezes of its source, with rows in memory, and with those of each read on the disk.
fn frozen_twice(
    source: &SourceConfig,
    study: &Study,
    folder: &Path,
) -> [Result<FrozenPatients, CohortProblems>; 2] {
    let aside = tempfile::tempdir_in(folder).unwrap();
    let folder = aside.path().to_path_buf();
    let freezing = Freezing::of_study(source, study, CELL_MIN);
    let in_pieces = freezing.read(Room::Folder { folder, values: 1 });
    let pieces = std::fs::read_dir(aside.path()).unwrap().count();
    assert!(pieces > 1, "found {pieces} pieces");
    let in_memory = freezing.read(Room::Memory);
    if let (Ok(one), Ok(other)) = (&in_memory, &in_pieces) {
        assert!(one.outcomes == other.outcomes);
        let [one, other] = [one, other].map(|frozen| frozen.rows.table().unwrap());
        assert!(one.identifiers(source) == other.identifiers(source));
        assert!(one == other);
    }
    [in_memory, in_pieces]
}

#[test]
fn rows_that_wait_on_the_disk_are_frozen_as_those_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path());
    let study = study();
    let [in_memory, in_pieces] = frozen_twice(&source, &study, folder.path());
    let (in_memory, in_pieces) = (in_memory.unwrap(), in_pieces.unwrap());
    // Some of them have no outcome.
    assert!(in_memory.outcomes.len() < PATIENTS);
    let bytes = snapshot::to_bytes(&in_pieces.rows).unwrap();
    let again = Snapshot::of_bytes(bytes).unwrap().table().unwrap();
    assert!(again == in_memory.rows.table().unwrap());

    // Where no column names patients, whole rows do.
    let unnamed = config(
        folder.path(),
        "kind = 'csv'\npath = 'patients.csv'\n",
        "[columns.x]\nrange = [0, 120]\n",
    );
    for frozen in frozen_twice(&unnamed, &study, folder.path()) {
        assert!(frozen.is_ok());
    }
}

/// A column may be numbers in one piece, nothing in another and text in the last.
#[test]
fn problems_of_rows_that_wait_on_the_disk_are_those_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path());
    let study = study();
    let path = folder.path().join("patients.csv");
    let table = std::fs::read_to_string(&path).unwrap();
    let changed = |change: &dyn Fn(usize, &mut Vec<String>)| {
        let lines = table.lines().enumerate().map(|(line, text)| {
            let mut fields: Vec<String> = text.split(',').map(str::to_owned).collect();
            change(line, &mut fields);
            fields.join(",")
        });
        std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
        let both = frozen_twice(&source, &study, folder.path());
        let [one, other] = both.map(|frozen| frozen.map(drop).map_err(|error| error.to_string()));
        assert_eq!(one, other);
        one
    };
    changed(&|line, fields| {
        if (1..12_000).contains(&line) {
            fields[4] = String::new();
        }
    })
    .unwrap();
    let text = changed(&|line, fields| {
        if line == 19_000 {
            fields[4] = "none".to_owned();
        }
    });
    let text = text.unwrap_err();
    assert!(
        text.contains("\"x\", line 19001: found text of 4"),
        "{text}"
    );
    let twice = changed(&|line, fields| {
        if line % 6_000 == 7 && line > 7 {
            fields[0] = " p6".to_owned();
        }
        if line == 20_000 {
            fields[0] = String::new();
        }
    });
    let twice = twice.unwrap_err();
    // Whoever has no outcome is no patient of the study.
    assert!(patient(6).is_enrolled() && !patient(12_006).is_enrolled());
    for wanted in [
        "lines 6008, 18008: found a patient of an earlier row, wanted each patient once",
        "line 20001: found a missing value, wanted an identifier of every patient",
    ] {
        assert!(twice.contains(wanted), "{twice}");
    }
}
