//! Groups as figures, and a page of them.

use super::super::CasesError;
use super::super::survival::Drawn;
use super::marks::GroupMarks;
use super::text::p;
use super::{Answer, Found};
use report::{GroupFeature, GroupScore, GroupValues, LocalFigure, Part};
use similarity::uses::clusters::{Clustering, Spread, ordered};

/// Rows of the map of patients.
const CELLS: usize = 80;
/// Features that are drawn, those first that lie farthest in any group.
const FEATURES_MAX: usize = 30;

/// The files of the folder: figures, and a page that has them all.
pub(super) fn all(
    found: &Found<'_>,
    answer: &Answer,
) -> Result<Vec<(&'static str, String)>, CasesError> {
    let mut figures = vec![("scores.svg", scores(found)?)];
    if let (Some(groups), Some(marks)) = (found.groups(), &found.marks) {
        figures.push(("map.svg", map(found, groups)?));
        let order = farthest(marks, groups);
        figures.push((
            "importance.svg",
            importance(found, (marks, groups), &order)?,
        ));
        figures.push(("features.svg", features(found, marks, &order)?));
    }
    let mut files: Vec<(&'static str, String)> = figures
        .iter()
        .map(|(name, figure)| (*name, figure.svg.clone()))
        .collect();
    let mut parts: Vec<Part> = figures
        .into_iter()
        .map(|(_, figure)| Part::Figure(figure))
        .collect();
    if let Some(drawn) = found.groups().map(|groups| survival(found, groups)) {
        let drawn = drawn?;
        files.extend(
            drawn
                .iter()
                .map(|drawn| ("survival.svg", drawn.figure.svg.clone())),
        );
        parts.extend(drawn.into_iter().flat_map(Drawn::parts));
    }
    let mut sentences = vec![answer.sentence.clone()];
    let remarks = answer.remarks.iter();
    sentences.extend(remarks.map(|remark| report::as_sentence(remark)));
    let title = format!("{}: clusters of patients", found.setting.job.name);
    files.push(("clusters.html", report::sheet(&title, &sentences, &parts)));
    Ok(files)
}

fn scores(found: &Found<'_>) -> Result<LocalFigure, CasesError> {
    let score = |one: &Clustering| GroupScore {
        groups: one.clusters(),
        bias: one.bias.value,
        stability: one.stability.clone(),
        by_chance: one.by_chance,
    };
    let scores: Vec<GroupScore> = found.choice.tried.iter().map(score).collect();
    Ok(LocalFigure {
        title: "How many clusters",
        svg: report::group_scores(&scores, found.threshold)?,
        caption: "Above: the unexplained part of the outcome. Below: how well each cluster recurs in samples of the patients, \
                  and the worst of as many clusters of shuffled patients.",
    })
}

fn map(found: &Found<'_>, groups: &Clustering) -> Result<LocalFigure, CasesError> {
    let (cells, counts) = ordered(&found.dissimilarity, groups, CELLS);
    let cells: Vec<Vec<f64>> = cells.outer_iter().map(|row| row.to_vec()).collect();
    let farthest = found.dissimilarity.farthest();
    Ok(LocalFigure {
        title: "How near patients are",
        svg: report::heat_map(&cells, &counts, farthest)?,
        caption: "Patients in the order of their clusters, each from its middle outwards. Stronger colour means nearer.",
    })
}

/// Features by how far they lie in any group, the farthest first.
fn farthest(marks: &GroupMarks, groups: &Clustering) -> Vec<usize> {
    let of_groups: Vec<_> = (0..groups.clusters())
        .map(|one| marks.distances(one))
        .collect();
    let most = |feature: usize| {
        let distances = of_groups.iter().map(|of_group| of_group[feature].0);
        distances.fold(0.0, f64::max)
    };
    let mut order: Vec<usize> = (0..marks.spreads.len()).collect();
    order.sort_by(|a, b| most(*b).total_cmp(&most(*a)));
    order.truncate(FEATURES_MAX);
    order
}

fn importance(
    found: &Found<'_>,
    (marks, groups): (&GroupMarks, &Clustering),
    order: &[usize],
) -> Result<LocalFigure, CasesError> {
    let of_group = |group: usize| -> Vec<(f64, bool)> {
        let all = marks.distances(group);
        order.iter().map(|feature| all[*feature]).collect()
    };
    let rows: Vec<_> = (0..groups.clusters()).map(of_group).collect();
    Ok(LocalFigure {
        title: "What distinguishes each cluster",
        svg: report::group_marks(&labels(found, order), &rows)?,
        caption: "Distance of a cluster's values from all others'. A dot is beyond 95 % of random clusters of its size.",
    })
}

fn labels(found: &Found<'_>, order: &[usize]) -> Vec<String> {
    let features = &found.setting.job.cohort.features;
    order
        .iter()
        .map(|place| features[*place].label.clone())
        .collect()
}

fn features(
    found: &Found<'_>,
    marks: &GroupMarks,
    order: &[usize],
) -> Result<LocalFigure, CasesError> {
    let drawn = order.iter().zip(labels(found, order)).map(|(place, name)| {
        let spreads = &marks.spreads[*place];
        let numbers = spreads.groups.iter().filter_map(|spread| match spread {
            Spread::Numbers(points) => Some(*points),
            Spread::Levels(_) => None,
        });
        let shares = spreads.groups.iter().filter_map(|spread| match spread {
            Spread::Levels(shares) => Some(shares.clone()),
            Spread::Numbers(_) => None,
        });
        let values = match spreads.levels.is_empty() {
            true => GroupValues::Numbers(numbers.collect()),
            false => GroupValues::Levels(spreads.levels.clone(), shares.collect()),
        };
        GroupFeature { name, values }
    });
    Ok(LocalFigure {
        title: "Features by cluster",
        svg: report::group_features(&drawn.collect::<Vec<_>>())?,
        caption: "By cluster: the middle half of the patients with the median, and lines to 5 and 95 %. For levels their shares, \
                  the first darkest.",
    })
}

fn survival(found: &Found<'_>, groups: &Clustering) -> Result<Option<Drawn>, CasesError> {
    let group = |group: usize| {
        let members = groups.members(group);
        let name = format!("cluster {}, {} patients", group + 1, members.len());
        (name, members)
    };
    let known = found
        .log_rank
        .map_or_else(String::new, |test| format!("; log-rank p {}", p(test.p)));
    let drawn: Vec<(String, Vec<usize>)> = (0..groups.clusters()).map(group).collect();
    let (presentation, outcome) = (&found.setting.presentation, found.setting.cohort.outcome());
    presentation.drawn("Survival by cluster", outcome, &drawn, &known)
}
