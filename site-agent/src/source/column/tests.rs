use super::*;
use crate::config::DeclaredRange;
use crate::source::frozen::fields::Fields;
use protocol::job::Job;
use std::path::Path;

fn reader(keys: &str, mapping: ColumnMapping) -> ColumnReader {
    let job = format!(
        "name = \"j\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\"]\n\
         [outcome]\ncolumn = \"o\"\nkind = \"binary\"\npositive = [\"1\"]\n\
         [[features]]\nname = \"x\"\nkind = \"numeric\"\n{keys}\n[unpsl]\n"
    );
    let job = Job::parse(&job).unwrap();
    let mut source = SourceConfig::of_file(Path::new("x.csv"), None);
    source.columns.insert("x".to_owned(), mapping);
    let terms = Terms::Site { cell_min: 10 };
    let reader = ColumnReader::new(&job.cohort.features[0], &source, terms, false);
    reader.unwrap_or_else(|_| panic!("a mismatch"))
}

/// The bits of what a reader takes, which then has nobody.
fn taken(reader: &mut ColumnReader) -> Vec<u64> {
    let Unfinished::Numbers(values) = &mut reader.values else {
        panic!("found levels, wanted numbers");
    };
    values.drain(..).map(f64::to_bits).collect()
}

fn at_once(reader: &mut ColumnReader, numbers: &[Option<f64>]) -> Option<Vec<u64>> {
    let values: Vec<f64> = numbers.iter().copied().flatten().collect();
    let mut next = 0..values.len();
    let places: Vec<Option<usize>> = numbers
        .iter()
        .map(|number| number.and_then(|_| next.next()))
        .collect();
    let places = places.iter().any(Option::is_none).then_some(&*places);
    let values = &values;
    let is_taken = reader.take_all(&Numbers { values, places });
    let found = taken(reader);
    assert!(is_taken || found.is_empty());
    is_taken.then_some(found)
}

fn one_by_one(reader: &mut ColumnReader, numbers: &[Option<f64>]) -> Vec<u64> {
    for number in numbers {
        reader.read(1, number.map_or(Field::Null, Field::Number));
    }
    taken(reader)
}

/// A span may only stand for numbers of which each alone would say nothing.
#[test]
fn a_span_is_taken_only_where_each_number_is() {
    let declared = |low, high| ColumnMapping {
        range: Some(DeclaredRange::Numbers { low, high }),
        ..ColumnMapping::default()
    };
    let missing = ColumnMapping {
        missing: vec!["3".to_owned()],
        ..ColumnMapping::default()
    };
    let complete = ColumnMapping {
        complete: true,
        ..ColumnMapping::default()
    };
    let mut readers = [
        reader("", ColumnMapping::default()),
        reader("range = [-4, 6]", ColumnMapping::default()),
        reader("missing = [\"-9\", \"2\"]", ColumnMapping::default()),
        reader("", declared(-2.0, 7.0)),
        reader("range = [-4, 6]", declared(-4.0, 6.0)),
        reader("", missing),
        reader("", complete),
    ];
    readers.iter_mut().for_each(|reader| reader.reserve(30));
    let (mut taken, mut refused, mut state) = (0, 0, 7_u64);
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..4_000 {
        let (least, width) = (draw(12) as f64 - 6.0, 1 + draw(8));
        let numbers: Vec<Option<f64>> = (0..1 + draw(30))
            .map(|_| (draw(60) > 0).then(|| least + draw(width) as f64))
            .collect();
        let mut fields = Fields::default();
        for number in &numbers {
            fields.push(number.map_or(Field::Null, Field::Number));
        }
        let Some(span) = fields.span() else {
            assert!(numbers.iter().all(Option::is_none));
            continue;
        };
        for reader in &mut readers {
            let takes = |number: &Option<f64>| match number {
                Some(number) => reader.plain(Field::Number(*number)).is_some(),
                None => !reader.complete,
            };
            match reader.takes_all(span) {
                true => assert!(numbers.iter().all(takes), "{numbers:?}"),
                false => refused += usize::from(!numbers.iter().all(takes)),
            }
            taken += usize::from(reader.takes_all(span));
            let at_once = at_once(reader, &numbers);
            assert_eq!(at_once.is_some(), reader.takes_all(span));
            if let Some(at_once) = at_once {
                assert_eq!(at_once, one_by_one(reader, &numbers), "{numbers:?}");
            }
        }
    }
    assert!(taken > 5_000 && refused > 1_000, "{taken} and {refused}");
    for number in [f64::NAN, f64::INFINITY] {
        let mut fields = Fields::default();
        (0..20).for_each(|row| fields.push(Field::Number(if row == 3 { number } else { 1.0 })));
        assert!(fields.span().is_none());
    }
}
