//! Promise: cells of time of a common baseline hold enough patients without those of any one hospital, and hospitals of very unequal size
//! find what R finds.
//!
//! `../../reference/regression/unequal.R` made the numbers.

use super::regression::{
    DAYS, POLICY, are_close, category, column, deal, floats, job, number, reference, simulated,
};
use kindred_tests::exit::RUN;
use kindred_tests::programs::Home;
use kindred_tests::workspace::root;
use std::fmt::Write as _;
use std::fs;

/// Hospitals of 400, 20 and 20: the first has each of its 200 patients twice.
fn unequal() -> Home {
    let home = Home::new();
    let table = root().join("shared/similarity/tests/reference/regression/patients.csv");
    let text = fs::read_to_string(table).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let rows = [&lines[..201], &lines[1..]].concat();
    home.write("unequal.csv", &(rows.join("\n") + "\n"));
    deal(&home, &home.join("unequal.csv"), |row| match row {
        0..400 => 0,
        400..420 => 1,
        _ => 2,
    });
    home
}

fn features() -> String {
    ["age", "marker"].map(number).concat() + &category("treated", "\"no\", \"yes\"")
}

fn until(horizon: u32) -> String {
    let outcome = DAYS.replace("horizon = 900", &format!("horizon = {horizon}"));
    job(&outcome, &features(), "baseline = \"common\"")
}

#[test]
fn hospitals_of_400_20_and_20_find_what_r_finds_of_all() {
    let wanted = reference("tests/reference/regression/unequal.json");
    let home = unequal();
    simulated(&home, &until(200)).must_succeed();
    for (name, of_r) in [
        ("coefficient", "coefficients"),
        ("standard_error", "standard_errors"),
    ] {
        are_close(
            &column(&home, "coefficients.csv", name),
            &floats(&wanted[of_r]),
        );
    }
}

/// Later the small ones have 3 and 3: whoever takes the large one's sums off would read what those six have.
#[test]
fn a_cell_of_one_large_hospital_and_few_others_ends_the_run_by_its_name() {
    let wanted = [
        "fewer than 20 patients on average",
        "from time 200 to 250",
        "of each site at most 10 count",
    ];
    simulated(&unequal(), &until(400)).must_fail(RUN, &wanted);
}

/// The third hospital has made up 200 who are followed to the end, as one patient of the others is.
#[test]
fn made_up_patients_do_not_fill_a_cell_for_the_one_who_is_there() {
    let home = Home::new();
    for (site, count, late) in [("north", 80, 1), ("south", 80, 0), ("east", 200, 200)] {
        let mut text = "patient,days,event,age,marker,treated\n".to_owned();
        for row in 0..count {
            let days = match row < late {
                true => 399,
                false => (130 + row * 3).min(349),
            };
            let (event, age, marker) = (row % 2, 40 + row * 7 % 31, row * 5 % 13);
            let treated = ["no", "yes"][row / 2 % 2];
            let _ = writeln!(text, "{row},{days},{event},{age},{marker},{treated}");
        }
        home.write(&format!("data/{site}.csv"), &text);
    }
    home.write("policy.toml", POLICY);
    let wanted = ["fewer than 20 patients", "from time 350 to 400"];
    simulated(&home, &until(400)).must_fail(RUN, &wanted);
}
