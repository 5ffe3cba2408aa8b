//! Promise: a column that hardly anybody has, or that is the same for all of a fold's training patients, ends no run.

use kindred_tests::draws::Draws;
use kindred_tests::programs::{Home, coordinator};
use kindred_tests::results::result;
use serde_json::Value;
use std::fmt::Write as _;

const SITES: [&str; 3] = ["north", "south", "east"];
const PATIENTS: usize = 100;

/// Three sites of 100, one of whose 300 patients has the rare finding.
fn home() -> Home {
    let home = Home::new();
    let mut draws = Draws(5);
    for site in SITES {
        let mut table = "id,age,marker,rare,class\n".to_owned();
        for patient in 0..PATIENTS {
            let (age, marker) = (40.0 + 30.0 * draws.number(), draws.number());
            let is_ill = marker + 0.5 * draws.number() > 0.75;
            let (class, rare) = (u8::from(is_ill), u8::from(site == "south" && patient == 17));
            writeln!(table, "{patient},{age:.1},{marker:.3},{rare},{class}").unwrap();
        }
        home.write(&format!("data/{site}.csv"), &table);
    }
    home
}

/// The same with columns that are constant at a site, nearly constant, another's multiple, and rare at each site.
fn odd_home() -> Home {
    let home = Home::new();
    let mut draws = Draws(11);
    for (place, site) in SITES.into_iter().enumerate() {
        let mut table = "id,age,marker,rare,own,nearly,twice,few,class\n".to_owned();
        for patient in 0..PATIENTS {
            let (age, marker) = (40.0 + 30.0 * draws.number(), draws.number());
            let is_ill = marker + 0.5 * draws.number() > 0.75;
            let (class, rare) = (u8::from(is_ill), u8::from(site == "south" && patient == 17));
            let (own, nearly) = (0.1 * place as f64, 7.3 + 1e-6 * draws.number());
            let few = u8::from(patient % 45 == place);
            writeln!(
                table,
                "{patient},{age:.1},{marker:.3},{rare},{own:.1},{nearly:.9},{:.2},{few},{class}",
                2.0 * age
            )
            .unwrap();
        }
        home.write(&format!("data/{site}.csv"), &table);
    }
    home
}

fn job(unpsl: &str) -> String {
    let numeric = |name: &str| format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n");
    format!(
        "name = \"rare\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\"]\n\
         [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n{}{}\
         [[features]]\nname = \"rare\"\nkind = \"binary\"\n\
         [unpsl]\n{unpsl}",
        numeric("age"),
        numeric("marker"),
    )
}

fn simulated(home: &Home, unpsl: &str, out: &str) -> Value {
    home.write("job.toml", &job(unpsl));
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", out];
    home.run(&coordinator(), &arguments).must_succeed();
    result(&home.join(out))
}

#[test]
fn a_finding_of_one_patient_of_three_hundred_ends_no_run_by_distances() {
    let home = home();
    let found = simulated(&home, "form = \"distance\"\n", "distance");
    assert_eq!(found["status"], "converged");
    assert_eq!(found["validation"]["folds"], 5);
    let rows = found["features"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["name"] == "rare"));
    let choice = "form = [\"inner_product\", \"distance\"]\nlambda_sparsity = [0.003, 0.01]\n";
    let chosen = simulated(&home, choice, "chosen");
    assert_eq!(chosen["status"], "converged");
    let tried = chosen["selection"].as_array().unwrap();
    for form in ["inner_product", "distance"] {
        assert!(tried.iter().any(|row| row["form"] == form), "{form}");
    }
}

#[test]
fn columns_that_hardly_vary_end_no_run() {
    let home = odd_home();
    let more = ["own", "nearly", "twice"];
    let more: String = more
        .iter()
        .map(|name| format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n"))
        .collect();
    let more = more + "[[features]]\nname = \"few\"\nkind = \"binary\"\n[unpsl]\n";
    let forms = ["form = \"inner_product\"", "form = \"distance\""];
    let others = [
        "",
        "centring = \"pooled\"\n",
        "pairs = 20\nlambda_sparsity = 0.02\n",
        "consensus = \"admm\"\nround_limit = 20\n",
    ];
    for (index, (form, other)) in forms
        .iter()
        .flat_map(|form| others.map(|other| (form, other)))
        .enumerate()
    {
        home.write(
            "job.toml",
            &job(&format!("{form}\n{other}")).replace("[unpsl]\n", &more),
        );
        let out = index.to_string();
        let arguments = ["simulate", "job.toml", "--data", "data", "--out", &out];
        home.run(&coordinator(), &arguments).must_succeed();
    }
}
