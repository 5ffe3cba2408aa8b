//! Every command runs, writes what it says, and names a file that it cannot use.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_kindred-experiments");
    Command::new(program).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The folder of the real data: `KINDRED_DATA`, or `../shared/data` beside the workspace.
fn real_data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("KINDRED_DATA").map_or(beside, PathBuf::from);
    if folder.join("parkinsons.csv").is_file() {
        return Some(folder);
    }
    println!(
        "skipped: found no {}; set KINDRED_DATA to the folder of the data",
        folder.join("parkinsons.csv").display()
    );
    None
}

/// Rows of a CSV file as names of columns and cells.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_path(path)
        .unwrap();
    let cells = |record: csv::StringRecord| record.iter().map(str::to_owned).collect();
    reader
        .records()
        .map(|record| cells(record.unwrap()))
        .collect()
}

fn unpsl_accuracy(rows: &[Vec<String>]) -> f64 {
    let line = rows.iter().find(|row| row[1] == "UnPSL").unwrap();
    let place = rows[0].iter().position(|name| name == "accuracy").unwrap();
    line[place].split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn table_2_tells_similar_synthetic_patients_from_others() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let output = run(&["table-2", "--only", "20", "--repeats", "1", "--out", folder]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(out.path().join("table-2.md")).unwrap();
    assert_eq!(text(&output.stdout), page);
    assert!(page.contains("## Synthetic, d = 20"));
    let rows = rows(&out.path().join("table-2.csv"));
    // a header, eight methods, and UnPSL once more where it stops early
    assert_eq!(rows.len(), 1 + 8 + 1);
    assert_eq!(rows[2][1], "UnPSL, stopped early");
    // above every number of the paper's column
    assert!(unpsl_accuracy(&rows) > 0.95, "{rows:?}");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 2);
}

#[test]
fn one_row_alone_is_that_of_the_whole_table() {
    let output = run(&[
        "table-2",
        "--only",
        "5",
        "--repeats",
        "1",
        "--method",
        "low-rank",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(lines.len(), 3, "{page}");
    let cells: Vec<&str> = lines[2].split(" | ").collect();
    assert_eq!(cells[0], "| Low-Rank");
    assert!(cells[1].parse::<f64>().unwrap() > 0.8, "{page}");
    assert!(lines[2].contains("duality gap at most "), "{page}");
    let output = run(&["table-2", "--method", "Nearest"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("UnPSL, Cosine"));
}

#[test]
fn table_1_classifies_patients_and_prints_the_papers_numbers_beside() {
    let Some(data) = real_data() else { return };
    let data = data.to_str().unwrap();
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let given = ["table-1", "--data", data, "--out", folder, "--only"];
    let output = run(&[&given[..], &["leukaemia"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let leukaemia = rows(&out.path().join("table-1.csv"));
    assert!(unpsl_accuracy(&leukaemia) > 0.85, "{leukaemia:?}");
    assert!(leukaemia[1].contains(&"0.9412".to_owned()));
    let output = run(&[&given[..], &["parkinsons", "--repeats", "1"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let parkinsons = rows(&out.path().join("table-1.csv"));
    assert_eq!(parkinsons.len(), 1 + 2 * (8 + 1));
    assert!(unpsl_accuracy(&parkinsons) > 0.75, "{parkinsons:?}");
}

#[test]
fn table_1_leaves_colon_samples_out() {
    let Some(data) = real_data() else { return };
    let data = data.to_str().unwrap();
    let output = run(&[
        "table-1",
        "--data",
        data,
        "--only",
        "colon",
        "--left-out",
        "1",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    assert!(page.contains("| UnPSL | learned distance | ") && page.contains("1 samples held out"));
}

#[test]
fn figures_are_svg_with_their_numbers_beside() {
    let Some(data) = real_data() else { return };
    let data = data.to_str().unwrap();
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let number = |cell: &String| cell.parse::<f64>().unwrap();
    for (name, iterations, curves) in [("figure-2", 60, 3), ("figure-3", 40, 4)] {
        let output = run(&[name, "--data", data, "--out", folder]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let svg = fs::read_to_string(out.path().join(format!("{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        let rows = rows(&out.path().join(format!("{name}.csv")));
        assert_eq!((rows.len(), rows[0].len()), (1 + iterations, 2 + curves));
        // every curve ends far below its start; the fourth column on of Figure 3 is the default consensus
        let (first, last) = (&rows[1], &rows[iterations]);
        let fell = |column: usize| number(&last[column]) < 0.1 * number(&first[column]);
        assert!(fell(curves + 1) && fell(3), "{first:?} to {last:?}");
    }
}

#[test]
fn data_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let refused = |text_of_file: Option<&str>, wanted: &[&str]| {
        let path = folder.path().join("parkinsons.csv");
        if let Some(content) = text_of_file {
            fs::write(&path, content).unwrap();
        }
        let output = run(&["table-1", "--data", data, "--only", "parkinsons"]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{message}");
        for part in wanted.iter().chain(&["parkinsons.csv"]) {
            assert!(message.contains(part), "{message} has no {part}");
        }
        assert!(output.stdout.is_empty());
    };
    refused(None, &["cannot be read", "No such file"]);
    refused(Some("name,Fo\nphon_R01_S01_1,1.0\n"), &["no column status"]);
    let head = "name,Fo,status\nphon_R01_S01_1,1.0,1\n";
    let cell = format!("{head}phon_R01_S01_2,many,1\n");
    refused(Some(&cell), &["row 2, column Fo", "a finite number"]);
    let class = format!("{head}phon_R01_S01_2,1.0,7\n");
    refused(Some(&class), &["row 2, column status", "one of its levels"]);
    refused(Some(head), &["found 1 rows"]);
    let output = run(&["table-1", "--data", data, "--only", "liver"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_study_goes_on_where_it_was_and_gives_the_same() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let study = || {
        let arguments = ["study", "--only", "meier 1", "--size", "160x20"];
        run(&[&arguments[..], &["--repeats", "2", "--out", folder]].concat())
    };
    let whole = study();
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let record = out.path().join("study.csv");
    let first = fs::read_to_string(&record).unwrap();
    // a header, and three outcomes of two splits
    assert_eq!(first.lines().count(), 1 + 3 * 2);
    let found = rows(&record);
    let of = |kind: &str, column: usize| -> f64 {
        let line = found
            .iter()
            .find(|row| row[1] == kind && row[5] == "0")
            .unwrap();
        line[column].parse().unwrap()
    };
    // the variance of f and its noise is above 1.6, and half of the patients are of each class
    assert!(of("number", 6) < 1.6, "{found:?}");
    assert!(of("survival", 6) > 0.55, "{found:?}");
    let page = fs::read_to_string(out.path().join("study.md")).unwrap();
    assert_eq!(text(&whole.stdout), page);
    assert!(
        fs::read_to_string(out.path().join("meier-1.svg"))
            .unwrap()
            .contains("concordance")
    );
    // cut off after the third split
    let kept: Vec<&str> = first.lines().take(4).collect();
    fs::write(&record, kept.join("\n") + "\n").unwrap();
    let again = study();
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(fs::read_to_string(&record).unwrap(), first);
    assert_eq!(text(&again.stdout), page);
    assert!(
        !text(&again.stderr).contains("number"),
        "{}",
        text(&again.stderr)
    );
    // a file of something else is named, and stays
    fs::write(&record, "data,outcome\nMeier 1,number\n").unwrap();
    let other = study();
    assert_eq!(other.status.code(), Some(3));
    assert!(
        text(&other.stderr).contains("found no column patients"),
        "{}",
        text(&other.stderr)
    );
    assert_eq!(
        fs::read_to_string(&record).unwrap(),
        "data,outcome\nMeier 1,number\n"
    );
}

#[test]
fn a_study_has_real_patients_where_they_are_at_hand() {
    let Some(data) = real_data() else { return };
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let arguments = [
        "study",
        "--outcome",
        "survival",
        "--only",
        "Friedman",
        "--size",
        "100x20",
    ];
    let more = [
        "--repeats",
        "1",
        "--data",
        data.to_str().unwrap(),
        "--out",
        folder,
    ];
    let output = run(&[&arguments[..], &more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found = rows(&out.path().join("study.csv"));
    let gbsg2 = found.iter().find(|row| row[0] == "GBSG2").unwrap();
    let concordance: f64 = gbsg2[6].parse().unwrap();
    assert!((0.6..0.78).contains(&concordance), "{found:?}");
    assert!(
        fs::read_to_string(out.path().join("iris.svg"))
            .unwrap()
            .contains("Mantel")
    );
}

#[test]
fn a_study_of_unknown_functions_or_sizes_names_what_it_wants() {
    for (flag, value, wanted) in [
        (
            "--only",
            "Friedmann",
            "wanted one of Friedman, Checkerboard",
        ),
        ("--outcome", "count", "wanted number, class or survival"),
        ("--size", "800x10", "at least 100x20"),
    ] {
        let output = run(&["study", "--out", "nowhere", flag, value]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(wanted),
            "{}",
            text(&output.stderr)
        );
    }
}
