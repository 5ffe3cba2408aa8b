//! What a job lists to choose from, and the objective that the first of each makes.

use super::{FORMS, NEIGHBOURS, NEIGHBOURS_TO_CHOOSE, SelectionSettings, form_name};
use crate::document::{OneOrMore, Section, narrow};
use crate::limits::{CANDIDATES_MAX, LAMBDA_MAX, THRESHOLD_MAX};
use crate::study::parts;
use similarity::learn::unpsl::{
    Centring, CorrelationScope, Form, Loss, PARTNERS_MAX, PairWeights, Pairs, Settings,
    SiteWeights, Threshold,
};
use similarity::numeric::precision::Precision;
use std::collections::HashSet;

/// `lambda_sparsity` is a number, a list, or the word "auto"; `rank` and `neighbours` a whole number or
/// a list. There are so many folds unless it says otherwise.
pub(super) fn candidates(section: &mut Section<'_, '_>, folds: u32) -> SelectionSettings {
    let default = Settings::default();
    let lambda_sparsity = if section.has_word("lambda_sparsity") {
        section.choice("lambda_sparsity", &[("auto", ())]);
        Vec::new()
    } else {
        let one = OneOrMore(vec![default.lambda_sparsity]);
        let OneOrMore(values) = section.or("lambda_sparsity", one);
        let fit = values
            .iter()
            .all(|value| (0.0..=LAMBDA_MAX).contains(value));
        if !fit
            || values.is_empty()
            || values.len() > CANDIDATES_MAX
            || !values.is_sorted_by(|a, b| a < b)
        {
            let wanted = format!(
                "a number of 0 or more, at most {LAMBDA_MAX:e}, such numbers ascending, or \"auto\""
            );
            section.problem("lambda_sparsity", &listed(&values), &wanted);
        }
        values
    };
    let rank = counts(section, "rank", default.rank as u64, 10_000);
    let is_usual = !section.has("neighbours");
    let neighbours = counts(section, "neighbours", u64::from(NEIGHBOURS), 1_000);
    let mut candidates = SelectionSettings {
        lambda_sparsity,
        form: forms(section, default.form),
        rank: rank.into_iter().map(narrow).collect(),
        neighbours: neighbours.into_iter().map(narrow).collect(),
        folds: parts::folds(section, "folds", folds),
    };
    if is_usual && candidates.are_several() {
        candidates.neighbours = NEIGHBOURS_TO_CHOOSE.to_vec();
    }
    candidates
}

/// A form, or both.
fn forms(section: &mut Section<'_, '_>, default: Form) -> Vec<Form> {
    let OneOrMore(words) = section.or("form", OneOrMore(vec![form_name(default).to_owned()]));
    let form = |word: &String| FORMS.into_iter().find(|(name, _)| name == word);
    let found: Option<Vec<Form>> = words.iter().map(|word| Some(form(word)?.1)).collect();
    let is_each_once =
        |forms: &Vec<Form>| forms.len() == 1 || (forms.len() == 2 && forms[0] != forms[1]);
    match found.filter(is_each_once) {
        Some(forms) => forms,
        None => {
            let wanted = "\"inner_product\", \"distance\", or both in a list";
            section.problem("form", &listed(&words), wanted);
            vec![default]
        }
    }
}

/// A whole number from 1, or a list of up to [`CANDIDATES_MAX`].
fn counts(section: &mut Section<'_, '_>, key: &'static str, default: u64, most: u64) -> Vec<u64> {
    let OneOrMore(counts) = section.or(key, OneOrMore(vec![default]));
    let distinct: HashSet<&u64> = counts.iter().collect();
    let fit = counts.iter().all(|count| (1..=most).contains(count));
    if !fit || counts.is_empty() || counts.len() > CANDIDATES_MAX || distinct.len() < counts.len() {
        let wanted = format!(
            "a whole number from 1 to {most}, or up to {CANDIDATES_MAX} of them, each once"
        );
        section.problem(key, &listed(&counts), &wanted);
        return vec![default];
    }
    counts
}

fn listed<T: ToString>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(T::to_string).collect();
    texts.join(", ")
}

pub(super) fn objective(section: &mut Section<'_, '_>, candidates: &SelectionSettings) -> Settings {
    let wanted = format!("a number of 0 or more, at most {LAMBDA_MAX:e}");
    let default = Settings::default();
    let losses = [("mean", Loss::Mean), ("sum", Loss::Sum)];
    let centrings = [("site", Centring::Site), ("pooled", Centring::Pooled)];
    let scopes = [
        ("site", CorrelationScope::Site),
        ("pooled", CorrelationScope::Pooled),
    ];
    let pair_weights = [
        ("equal", PairWeights::Equal),
        ("balanced", PairWeights::Balanced),
    ];
    let site_weights = [
        ("pairs", SiteWeights::Pairs),
        ("patients", SiteWeights::Patients),
        ("equal", SiteWeights::Equal),
    ];
    let lambda_correlation = section.number(
        "lambda_correlation",
        default.lambda_correlation,
        &wanted,
        |lambda| (0.0..=LAMBDA_MAX).contains(&lambda),
    );
    let first_lambda = candidates.lambda_sparsity.first().copied();
    Settings {
        rank: candidates.rank.first().copied().unwrap_or(default.rank),
        lambda_sparsity: first_lambda.unwrap_or(default.lambda_sparsity),
        lambda_correlation,
        centring: section
            .choice("centring", &centrings)
            .unwrap_or(default.centring),
        form: candidates.form.first().copied().unwrap_or(default.form),
        threshold: threshold(section),
        loss: section.choice("loss", &losses).unwrap_or(default.loss),
        site_weights: section
            .choice("site_weights", &site_weights)
            .unwrap_or(default.site_weights),
        correlation: section
            .choice("correlation", &scopes)
            .unwrap_or(default.correlation),
        pairs: pairs(section),
        pair_weights: section
            .choice("pair_weights", &pair_weights)
            .unwrap_or(default.pair_weights),
        precision: Precision::default(),
    }
}

/// `threshold` is the word "site", the word "common", which starts it at the paper's 1, or a number.
fn threshold(section: &mut Section<'_, '_>) -> Threshold {
    const PAPER: f64 = 1.0;
    if !section.has("threshold") || section.has_word("threshold") {
        let learned = [
            ("site", Threshold::Site),
            ("common", Threshold::Common(PAPER)),
        ];
        return section
            .choice("threshold", &learned)
            .unwrap_or(Threshold::Site);
    }
    let wanted = format!("a number of at most {THRESHOLD_MAX:e}, \"site\" or \"common\"");
    let is_threshold = |b: f64| b.abs() <= THRESHOLD_MAX;
    Threshold::Fixed(section.number("threshold", PAPER, &wanted, is_threshold))
}

/// `pairs` is the word "all", or of how many partners each patient is sure.
pub(crate) fn pairs(section: &mut Section<'_, '_>) -> Pairs {
    if !section.has("pairs") || section.has_word("pairs") {
        return section
            .choice("pairs", &[("all", Pairs::All)])
            .unwrap_or(Pairs::All);
    }
    Pairs::PerPatient(narrow(section.count("pairs", 1, 1..=PARTNERS_MAX as u64)))
}
