//! What is read of a document, and what is said of one that cannot be read.

use super::*;

fn parse(text: &str) -> Result<(String, f64), DocumentErrors> {
    read(text, |section| {
        let name = section.required::<String>("name");
        let rank = section.table("model", |model| {
            model.choice("loss", &[("mean", ()), ("sum", ())]);
            Some(model.number("rank", 1.0, "a positive number", |rank| rank > 0.0))
        });
        Some((name?, rank.unwrap_or(1.0)))
    })
}

#[test]
fn a_document_without_fault_is_read() {
    assert_eq!(
        parse("name = 'a'\n[model]\nrank = 3\n"),
        Ok(("a".to_owned(), 3.0))
    );
}

#[test]
fn all_problems_come_at_once_with_their_lines() {
    let errors = parse("nmae = 'a'\n[model]\nrank = -3\nloss = 'maen'\nextra = 1\n");
    let text = errors.unwrap_err().to_string();
    let wanted = [
        "line 1: nmae: found an unknown key; did you mean \"name\"?",
        "line 3: model.rank: found -3, wanted a positive number",
        "line 4: model.loss: found \"maen\", wanted one of \"mean\", \"sum\"; did you mean \"mean\"?",
        "line 5: model.extra: found an unknown key; known keys are \"loss\", \"rank\"",
    ];
    assert_eq!(text, wanted.join("\n"));
}

#[test]
fn a_value_that_is_absent_or_of_another_type_is_told_once() {
    let parse = |text: &str| {
        let read = read(text, |section| {
            let name = section.required::<String>("name").unwrap_or_default();
            if name.is_empty() {
                section.problem("name", "\"\"", "a name");
            }
            section.optional::<String>("name");
            Some(())
        });
        read.unwrap_err().to_string()
    };
    let absent = "line 1: the file: found no key \"name\", which is required";
    assert_eq!(parse(""), absent);
    assert_eq!(parse("name = 7"), "line 1: name: found 7, wanted a string");
    assert_eq!(
        parse("name = ''"),
        "line 1: name: found \"\", wanted a name"
    );
    let unknown = parse("name = ''\nzzz = 1");
    assert!(unknown.ends_with("known keys are \"name\""), "{unknown}");
}

#[test]
fn a_hundred_problems_are_told_with_their_lines_and_the_others_are_counted() {
    let mut text = "name = 'a'\n".to_owned();
    for key in 0..250 {
        text += &format!("key_{key:03} = 1\n");
    }
    let errors = parse(&text).unwrap_err();
    assert_eq!((errors.errors().len(), errors.more()), (100, 150));
    for error in errors.errors() {
        let key: usize = error.text[4..7].parse().unwrap();
        assert_eq!(error.line, key + 2, "{}", error.text);
    }
    assert!(errors.to_string().ends_with("\nand 150 more"));
}

#[test]
fn a_name_in_other_letters_is_the_nearest() {
    assert_eq!(nearest("age", &["SEX", "AGE"]), Some("AGE"));
}

#[test]
fn a_problem_quotes_no_more_than_its_start() {
    let text = format!("name = 'a'\n{} = 1\n", "k".repeat(100_000));
    let text = parse(&text).unwrap_err().to_string();
    assert!(text.len() < 400, "{} bytes", text.len());
}

#[test]
fn text_that_is_no_toml_names_its_line() {
    let text = parse("name = 'a'\nrank = = 3\n").unwrap_err().to_string();
    assert!(text.starts_with("line 2: found no valid TOML"), "{text}");
    let text = parse("name = 'a'\nrank = \"open\n")
        .unwrap_err()
        .to_string();
    let wanted = "line 2: found no valid TOML: invalid character in string";
    assert!(text.starts_with(wanted), "{text}");
}
