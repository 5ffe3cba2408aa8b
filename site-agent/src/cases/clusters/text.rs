//! Groups in words and tables.

use super::super::shown::{four, in_unit, short, table};
use super::super::survival::Presentation;
use super::{Answer, Found, OneGroup};
use crate::cli::StabilityOption;
use similarity::uses::cases::Fared;

/// Features that the first sentence names of a group.
const NAMED_MAX: usize = 2;
/// Features that a table has of a group.
const LISTED_MAX: usize = 6;
/// Stability from which it is sure, and very sure, who belongs to which group (Hennig 2008).
const SURE: f64 = 0.75;
const VERY_SURE: f64 = 0.85;
/// Groups must be found again so much better than those of shuffled patients.
const BEYOND_CHANCE: f64 = 0.05;

/// The answer in a sentence: how many groups, how sure, what marks each, how outcomes differ.
pub(super) fn sentence(found: &Found<'_>, rule: StabilityOption, groups: &[OneGroup]) -> String {
    let patients = found.setting.patients.len();
    let tried = &found.choice.tried;
    let asked = found.threshold;
    let wanted = match rule {
        StabilityOption::EveryGroup => format!("every cluster recurs at {asked} or more"),
        StabilityOption::Mean => format!("clusters recur at more than {asked} on average"),
    };
    let (Some(division), false) = (found.groups(), groups.is_empty()) else {
        let (from, to) = (tried.first(), tried.last());
        let ends = from
            .zip(to)
            .map(|(from, to)| (from.clusters(), to.clusters()));
        let (from, to) = ends.unwrap_or((2, 2));
        return format!(
            "There are no stable clusters among the {patients} patients: {wanted} for no number from {from} to {to}."
        );
    };
    let least = division.stability.iter().copied().fold(1.0, f64::min);
    let start = match found.choice.best {
        Some(_) => format!("The {patients} patients form {} clusters", groups.len()),
        None => format!(
            "The {} requested clusters of the {patients} patients are not stable",
            groups.len()
        ),
    };
    let by_chance = division
        .by_chance
        .filter(|chance| least < chance + BEYOND_CHANCE);
    let sure = match (found.choice.best, by_chance) {
        (None, _) => format!("the least recurs at {least:.2}"),
        (_, Some(chance)) => format!(
            "but shuffled features give clusters as stable ({chance:.2} against {least:.2}), so these may be single features or \
             meaningless"
        ),
        _ if least >= VERY_SURE => {
            format!("with very sure membership (each recurs at {least:.2} or more)")
        }
        _ if least >= SURE => format!("with sure membership (each recurs at {least:.2} or more)"),
        _ => format!("a pattern with unsure membership (one recurs at {least:.2})"),
    };
    let of_groups = groups.iter().map(marked).collect::<Vec<_>>().join(", ");
    let outcomes = groups
        .iter()
        .map(|one| one.outcome.clone())
        .collect::<Vec<_>>()
        .join(" | ");
    let test = found
        .log_rank
        .map(|test| format!(" (log-rank p {})", p(test.p)));
    let alike = match found.choice.differ || found.choice.best.is_none() {
        true => "",
        false => ". Their outcomes do not differ beyond chance",
    };
    format!(
        "{start}, {sure}: {of_groups}. {}: {outcomes}{}{alike}.",
        found.setting.job.cohort.outcome.label,
        test.unwrap_or_default()
    )
}

/// What marks a group, in few words.
fn marked(group: &OneGroup) -> String {
    let named = group.marks.iter().filter(|mark| mark.marks).take(NAMED_MAX);
    let named: Vec<&str> = named.map(|mark| mark.what.as_str()).collect();
    let marks = match named.is_empty() {
        true => "features only by chance".to_owned(),
        false => named.join(" and "),
    };
    format!(
        "cluster {} ({} patients) has distinct {marks}",
        group.group, group.patients
    )
}

/// A p of a test, with its sign.
pub(in super::super) fn p(value: f64) -> String {
    match value < 1e-4 {
        true => "< 0.0001".to_owned(),
        false => format!("= {}", four(value)),
    }
}

/// How a group fared, in few words.
pub(super) fn outcome(fared: &Fared, presentation: &Presentation) -> String {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    match fared {
        Fared::Classes(shares) => {
            // Of two classes the second says all, of more the most frequent.
            let told = match shares.as_slice() {
                [_, second] => Some(second),
                all => all
                    .iter()
                    .max_by(|a, b| a.share.value.total_cmp(&b.share.value)),
            };
            told.map_or_else(String::new, |one| {
                format!("{} {}", percent(one.share.value), one.level)
            })
        }
        Fared::Mean(mean) => format!("mean {}", in_unit(mean.value, &presentation.specification)),
        Fared::Survival(curve) => presentation.short(curve),
    }
}

pub(super) fn whole(answer: &Answer) -> String {
    let mut text = format!("{}\n\n", answer.sentence);
    text.push_str(&tried(answer));
    for group in &answer.groups {
        text.push_str(&marks(group));
    }
    if let Some(test) = &answer.log_rank {
        text.push_str(&format!(
            "Survival of the clusters: log-rank chi-squared {} with {} degrees, p {}.\n\n",
            short(test.chi_squared),
            test.degrees,
            p(test.p)
        ));
    }
    if !answer.new.is_empty() {
        let header = [
            "new patient",
            "cluster",
            "distance from its medoid",
            "from the next one's",
        ];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        rows.extend(answer.new.iter().map(|one| {
            let group = one
                .group
                .map_or_else(|| "none".to_owned(), |group| group.to_string());
            vec![
                one.patient.clone(),
                group,
                four(one.distance),
                four(one.next),
            ]
        }));
        text.push_str(&(table(&rows, &[0]) + "\n"));
    }
    for remark in &answer.remarks {
        text.push_str(&format!("note: {remark}\n"));
    }
    text.trim_end().to_owned()
}

fn tried(answer: &Answer) -> String {
    let header = [
        "clusters",
        "bias",
        "gain by chance",
        "stability: least",
        "mean",
        "least by chance",
        "",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for one in &answer.tried {
        let count = one.stability.len() as f64;
        rows.push(vec![
            one.groups.to_string(),
            match one.bias_share {
                Some(share) => format!("{} ({:.0} % of all)", short(one.bias), 100.0 * share),
                None => short(one.bias),
            },
            one.chance.map_or_else(|| "-".to_owned(), four),
            four(one.stability.iter().copied().fold(1.0, f64::min)),
            four(one.stability.iter().sum::<f64>() / count),
            one.by_chance.map_or_else(|| "-".to_owned(), four),
            match (one.chosen, one.stable) {
                (true, _) => "chosen",
                (false, true) => "stable",
                (false, false) => "not stable",
            }
            .to_owned(),
        ]);
    }
    format!(
        "By the {}; stability {} ({} of them), at least {}; bias is the unexplained part of the outcome; the gain by chance is how \
         often permuted outcomes gain as much over fewer clusters\n{}\n",
        answer.comparison,
        answer.stability,
        answer.samples,
        answer.threshold,
        table(&rows, &[6])
    )
}

fn marks(group: &OneGroup) -> String {
    let mut text = format!(
        "Cluster {}: {} patients around {}, recurs at {}\nOutcomes: {}.\n",
        group.group,
        group.patients,
        group.medoid,
        four(group.stability),
        group.sentence
    );
    let marking = || group.marks.iter().filter(|mark| mark.marks);
    if marking().next().is_none() {
        text.push_str("No feature distinguishes it beyond chance.\n\n");
        return text;
    }
    let header = [
        "feature",
        "the cluster",
        "all others",
        "distance",
        "by chance",
        "p",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(marking().take(LISTED_MAX).map(|mark| {
        vec![
            mark.label.clone(),
            mark.group.clone(),
            mark.others.clone(),
            four(mark.distance),
            four(mark.by_chance),
            four(mark.p),
        ]
    }));
    text.push_str(&table(&rows, &[0]));
    let more = marking().count().saturating_sub(LISTED_MAX);
    if more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    text.push('\n');
    text
}
