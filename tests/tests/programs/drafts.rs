//! Promise: a hospital drafts a study from its table, or from what its site.toml declares, and nothing of few patients is in either.
//! What does not fit a study is said with both sides, to the hospital's own people.

use super::studies;
use kindred_tests::deployment::Deployment;
use kindred_tests::exit::{DATA, USAGE};
use kindred_tests::programs::{Home, Ran, site_agent};
use std::fmt::Write as _;
use std::fs;

/// What only one patient has, or few: none of it may be in a text that others read.
const SECRETS: [&str; 9] = [
    "MRN90005",
    "Okonkwo",
    "104",
    "9731",
    "oncology-trial",
    "1919",
    "hermaphrodite",
    "seen in the night",
    "-77.25",
];

/// A table of 300 patients with identifiers, names, free text, dates, rare levels and extreme values.
fn table() -> String {
    let mut text =
        "patient_id,surname,age (years),chol_mg_dl,sex,cp,angina,ward,born,note,base,disease\n"
            .to_owned();
    for place in 0..300 {
        let is = |one: usize| place == one;
        let surname = if is(5) {
            "Okonkwo".to_owned()
        } else {
            format!("Name{}", place % 150)
        };
        let age = if is(5) { 104 } else { 40 + place * 7 % 45 };
        let chol = if is(9) { 9731 } else { 150 + place * 13 % 200 };
        let sex = if is(11) {
            "hermaphrodite"
        } else {
            ["f", "m"][place % 2]
        };
        let angina = ["no", "yes"][usize::from(place % 3 > 0)];
        let ward = if (40..49).contains(&place) {
            "oncology-trial"
        } else {
            ["surgery", "icu", "heart"][place % 3]
        };
        let born = if is(5) { 1919 } else { 1940 + place % 40 };
        let note = if is(7) {
            "seen in the night".to_owned()
        } else {
            format!("seen on day {place}")
        };
        let base = if is(3) {
            "-77.25".to_owned()
        } else {
            format!("{}.5", place % 30)
        };
        let _ = writeln!(
            text,
            "MRN{},{surname},{age},{chol},{sex},{},{angina},{ward},{born}-03-04,{note},{base},{}",
            90_000 + place,
            1 + place % 4,
            place / 2 % 2
        );
    }
    text
}

fn draft(home: &Home, options: &[&str]) -> Ran {
    let draft = [&["study", "draft"], options].concat();
    home.run(&site_agent(), &draft)
}

/// A configuration but for its source.
const HEAD: &str = "site = \"north\"\ncoordinator = \"localhost:1\"\nfolder = \"agent\"\n\n\
    [tls]\nca = \"ca.pem\"\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n\n";

fn has_no_secret(said: &str) {
    for secret in SECRETS {
        assert!(!said.contains(secret), "{secret} is in\n{said}");
    }
}

#[test]
fn nothing_of_few_patients_is_in_a_draft_or_in_what_is_declared() {
    let home = Home::new();
    home.write("patients.csv", &table());
    let asked = [
        "--from",
        "patients.csv",
        "--outcome",
        "disease",
        "--categorical",
        "cp",
    ];
    let drafted = draft(&home, &[&asked[..], &["--out", "heart.toml"]].concat()).must_succeed();
    has_no_secret(&drafted.stderr);
    let text = fs::read_to_string(home.join("heart.toml")).unwrap();
    has_no_secret(&text);
    has_no_secret(
        &draft(&home, &[&asked[..], &["--json"]].concat())
            .must_succeed()
            .stdout,
    );
    for wanted in [
        "name = \"age\"\nkind = \"numeric\"\nunit = \"years\"\n",
        "name = \"chol\"\nkind = \"numeric\"\nunit = \"mg/dl\"\n",
        "# rarer levels are excluded\nname = \"sex\"\nkind = \"categorical\"\nlevels = [\"f\", \"m\"]\n",
        "name = \"cp\"\nkind = \"categorical\"\nlevels = [\"1\", \"2\", \"3\", \"4\"]\n",
        "name = \"angina\"\nkind = \"binary\"\npositive = \"yes\"\nnegative = \"no\"\n",
        "levels = [\"heart\", \"icu\", \"surgery\"]\n",
        "kind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n",
        "#   \"patient_id\": an identifier\n",
        "#   \"surname\": free text",
        "#   \"born\": dates",
        "#   \"note\": free text",
    ] {
        assert!(text.contains(wanted), "{wanted}\n---\n{text}");
    }
    assert!(
        !text.lines().any(|line| line.starts_with("range")),
        "{text}"
    );

    // The same hospital's configuration, proposed: nobody has looked at it, so nothing of it is said.
    home.write("site.toml", HEAD);
    let init = [
        "site",
        "init",
        "heart.toml",
        "--data",
        "patients.csv",
        "--config",
        "site.toml",
        "--confirm-units",
    ];
    home.run(&site_agent(), &init)
        .must_fail(USAGE, &["2 questions are open"]);
    let site = fs::read_to_string(home.join("site.toml")).unwrap();
    let answered: String = site
        .lines()
        .filter(|line| !line.starts_with("open ="))
        .fold(String::new(), |text, line| text + line + "\n");
    home.write("site.toml", &answered);
    let declared = draft(&home, &["--from", "site.toml"]).must_succeed();
    has_no_secret(&declared.stdout);
    assert!(
        !declared.stdout.contains("range = [") && declared.stdout.contains("marked `review`"),
        "{}",
        declared.stdout
    );
}

#[test]
fn what_people_have_declared_is_a_text_that_a_study_takes() {
    let home = Home::new();
    let columns = "[source]\nkind = \"csv\"\npath = \"none.csv\"\n\n\
        [columns.age]\ncolumn = \"AGE\"\nrange = [18, 110]\n\n\
        [columns.chol]\nunit = \"mmol/l\"\nconvert = [{ to = \"mg/dl\", factor = 38.67 }]\nrange = [1.3, 18]\n\n\
        [columns.sex]\nlevels = { \"m\" = \"1\", \"f\" = \"0\" }\n\n\
        [columns.cp]\nlevels = [\"typical\", \"atypical\", \"none\"]\n\n\
        [columns.crp]\nunit = \"mg/l\"\nrange = [0, inf]\n\n\
        [columns.born]\nrange = [\"1900-01-01\", \"2010-12-31\"]\n\n\
        [columns.\"looked at\"]\n# review: the range of the patients of today\nrange = [41, 97]\n\n\
        [columns.num]\nlevels = { \"1\" = \"1\", \"2\" = \"1\", \"*\" = \"0\" }\n";
    home.write("site.toml", &format!("{HEAD}{columns}"));
    let declared = draft(&home, &["--from", "site.toml", "--outcome", "num"])
        .must_succeed()
        .stdout;
    for wanted in [
        "name = \"age\"\nkind = \"numeric\"\nrange = [18.0, 110.0]\n",
        "# site.toml also converts it to \"mg/dl\"\nname = \"chol\"\nkind = \"numeric\"\nunit = \"mmol/l\"\nrange = [1.3, 18.0]\n",
        "name = \"sex\"\nkind = \"binary\"\npositive = \"1\"\nnegative = \"0\"\n",
        "levels = [\"typical\", \"atypical\", \"none\"]\n",
        "unit = \"mg/l\"\n# range = [lowest, highest]",
        "column = \"num\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n",
        "\"born\": days from 1900-01-01 to 2010-12-31; for ages write kind = \"age\"",
        "\"looked at\": marked `review` in site.toml",
    ] {
        assert!(declared.contains(wanted), "{wanted}\n---\n{declared}");
    }
    for hidden in ["AGE", "97", "41"] {
        assert!(!declared.contains(hidden), "{hidden}\n---\n{declared}");
    }
    // It is a study's text, at once.
    home.write("heart.toml", &declared);
    let review = ["study", "review", "heart.toml", "--config", "site.toml"];
    let page = home.run(&site_agent(), &review).must_succeed().stdout;
    assert!(!page.contains("does not fit"), "{page}");

    // Of a study that fits less, the page names both sides of all of it.
    let other = declared
        .replace("range = [18.0, 110.0]", "range = [0, 90]")
        .replace("unit = \"mmol/l\"\nrange = [1.3, 18.0]", "unit = \"g/l\"")
        .replace(
            "\"typical\", \"atypical\", \"none\"",
            "\"typical\", \"atypical\"",
        );
    home.write("heart.toml", &other);
    let page = home.run(&site_agent(), &review).must_succeed().stdout;
    for wanted in [
        "column \"age\": found the job's range from 0 to 90, wanted one that contains the site's own, 18 to 110",
        "column \"chol\": found the unit \"mmol/l\", wanted the unit \"g/l\", or a conversion to it in site.toml",
        "column \"cp\": found a mapping to the level \"none\" in site.toml, wanted one of \"typical\", \"atypical\"",
        "`kindred-site-agent study draft --from site.toml` prints",
    ] {
        assert!(page.contains(wanted), "{wanted}\n---\n{page}");
    }
}

#[test]
fn whoever_approves_reads_both_sides_and_a_study_of_what_is_declared_fits_at_once() {
    let deployment = Deployment::alone();
    let home = &deployment.home;
    let declared = draft(home, &["--from", "north.toml"]).must_succeed().stdout;
    let of_table = ["--from", "data/north.csv", "--outcome", "class"];
    let of_table = draft(home, &of_table).must_succeed().stdout;
    let first = |text: &str| text.find("\n[[features]]").unwrap();
    let own = &of_table[..first(&of_table)];
    let own = own.replace("\"east\"]", "\"east\", \"west\"]");
    let fits = format!("{own}{}", &declared[first(&declared)..]);
    let narrow = fits
        .replace("name = \"study\"", "name = \"narrow\"")
        .replacen("range = [-1000.0, 1000.0]", "range = [-1.0, 1.0]", 1);
    studies::draft(&deployment, &narrow, "narrow.toml").must_succeed();
    studies::at_site(&deployment, "north", &["approve", "narrow.toml"]).must_fail(
        DATA,
        &[
            "found the job's range from -1 to 1, wanted one that contains the site's own, -1000 to 1000",
            "`kindred-site-agent study draft --from site.toml` prints",
        ],
    );
    studies::draft(&deployment, &fits, "fits.toml").must_succeed();
    studies::at_site(&deployment, "north", &["approve", "fits.toml"]).must_succeed();
}

#[test]
fn a_table_that_cannot_be_meant_names_its_file_line_and_column_and_no_value() {
    let home = Home::new();
    let from = |name: &str, bytes: &[u8]| {
        fs::write(home.join(name), bytes).unwrap();
        draft(&home, &["--from", name])
    };
    for (name, bytes, wanted) in [
        ("empty.csv", &b""[..], &["empty.csv, line 1: found an empty file"][..]),
        ("header.csv", b"age,sex\n", &["line 2: found no row, wanted one for each patient"]),
        ("latin.csv", b"age,sex\n1,\xe4\n", &["latin.csv, line 2: found text that is not UTF-8"]),
        ("tilde.csv", b"age~sex\n1~2\n", &["line 1: found no table of two columns", "semicolons"]),
        (
            "bare.csv",
            b"71,Okonkwo,m\n64,Smith,f\n80,Smith,m\n",
            &[
                "bare.csv:",
                "header, column 1: found a number, wanted a name",
                "header, column 3: found what is also a value of the column",
            ],
        ),
        (
            "twice.csv",
            b"age,sex,age\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2\n",
            &[
                "header, columns 1 and 3: found one name twice, wanted each once",
                "line 12: found another number of fields, wanted 3",
            ],
        ),
        (
            "visits.csv",
            b"Patient ID,ward\n7,icu\n7,icu\n8,er\n",
            &["column \"Patient ID\": found several rows of one patient, wanted one row for each"],
        ),
        ("broken.parquet", b"PAR1", &["broken.parquet, its end: found no Parquet file"]),
    ] {
        let ran = from(name, bytes).must_fail(DATA, wanted);
        assert!(!ran.stderr.contains("Okonkwo") && !ran.stderr.contains("71"), "{}", ran.stderr);
    }
    draft(&home, &["--from", "nowhere.csv"]).must_fail(DATA, &["nowhere.csv could not be read"]);

    home.write("patients.csv", &table());
    let asked = [
        "--from",
        "patients.csv",
        "--outcome",
        "diseas",
        "--categorical",
        "chest",
    ];
    let wanted = [
        "--outcome: found \"diseas\"",
        "did you mean \"disease\"?",
        "--categorical: found \"chest\"",
    ];
    draft(&home, &asked).must_fail(USAGE, &wanted);
    let constant = table().replace(",0\n", ",1\n");
    home.write("constant.csv", &constant);
    draft(&home, &["--from", "constant.csv", "--outcome", "disease"])
        .must_fail(USAGE, &["--outcome \"disease\": found one value alone"]);
    home.write("heart.toml", "mine");
    let out = ["--from", "patients.csv", "--out", "heart.toml"];
    draft(&home, &out).must_fail(USAGE, &["heart.toml: found a file", "--force"]);
    assert_eq!(fs::read_to_string(home.join("heart.toml")).unwrap(), "mine");
    draft(&home, &[&out[..], &["--force"]].concat()).must_succeed();
}
