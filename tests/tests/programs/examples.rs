//! Promise: the examples of the library run, and find what their tables say.

use kindred_tests::programs::{Home, example};

/// The lines that `name` prints.
fn lines(home: &Home, name: &str, arguments: &[&str]) -> Vec<String> {
    let ran = home.run(&example(name), arguments).must_succeed();
    ran.stdout.lines().map(str::to_owned).collect()
}

/// 60 patients whose class is whether they are above 60, and a number that says nothing of it.
fn table(home: &Home) -> String {
    let row = |patient: u32| {
        let (age, class) = (31 + patient, if patient < 30 { "well" } else { "ill" });
        format!("{age},{},{class}\n", patient * 17 % 60)
    };
    let rows: String = (0..60).map(row).collect();
    let path = home.write("patients.csv", &format!("age,number,class\n{rows}"));
    path.display().to_string()
}

#[test]
fn a_metric_is_learned_on_a_table_and_without_one() {
    let home = Home::new();
    let found = lines(&home, "metric", &[&table(&home)]);
    assert!(found[0].starts_with("60 patients, "), "{found:#?}");
    assert!(found[2].ends_with(" age"), "{found:#?}");
    let made = lines(&home, "metric", &[]);
    assert_eq!(made[2].split_whitespace().last(), Some("second_1"));
}

#[test]
fn proximities_of_a_forest_are_those_of_alike_patients() {
    let home = Home::new();
    let found = lines(&home, "proximities", &[&table(&home)]);
    assert!(found[1].starts_with("patient 0 (well)"), "{found:#?}");
    let last = found.last().unwrap();
    let share: f64 = last.split_whitespace().nth(4).unwrap().parse().unwrap();
    assert!(share > 90.0, "{last}");
}

#[test]
fn a_file_that_does_not_fit_is_named_with_its_row() {
    let home = Home::new();
    let path = home.write("short.csv", "age,class\n40,well\n50\n");
    let ran = home.run(&example("metric"), &[&path.display().to_string()]);
    let wanted = "short.csv: row 3: found 1 values, wanted 2";
    assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
}

#[test]
fn three_sites_find_the_pooled_metric_by_masked_sums() {
    let found = lines(&Home::new(), "federation", &[]);
    let last = found.last().unwrap();
    let apart = last.split_whitespace().rev().nth(3).unwrap();
    assert!(apart.parse::<f64>().unwrap() < 1e-4, "{last}");
    let sent = found.iter().filter(|line| line.contains(" sends "));
    assert!(sent.count() % 3 == 0 && found.len() > 9, "{found:#?}");
}
