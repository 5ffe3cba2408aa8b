//! What a run that looks for groups of patients leaves: how many there are, what marks each, and how it fared.

pub(super) mod answer;
pub(crate) mod curves;

use super::room::{Reported, usual_title};
use super::{Chapters, Said};
use crate::alike::AskedAbout;
use crate::csvw::{About, Column, CsvTable, File};
use crate::figures::FigureError;
use crate::files::{Learnt, json};
use crate::groups::{GroupScore, group_scores};
use crate::tables;
use crate::words::{figure, probability, sites_in_words};
use answer::{Answer, Group, OneMark, OneTried};
use maud::{Markup, html};
use protocol::cohort::{CohortSpecification, OutcomeSpecification};
use protocol::job::Job;
use protocol::method::cluster::model::Model;
use protocol::method::cluster::settings::ClusterSettings;
use protocol::result::RunResult;
use serde::Serialize;
use std::io;

/// Marks of a group that its table shows.
const MARKS: usize = 8;
/// How the groups come about.
const HOW: &str = "Each site divides its patients into small groups, whatever their outcomes, and moves a small group whole or not at all. Every \
    site adds up its small groups by the nearest centre. The sums over the sites give the next centres (k-means with squared \
    Euclidean distances). So the clusters are the same at all sites, and no patient is a centre.";

/// How thirds come about.
const THIRDS: &str = "Patients of small groups, by the risk that the regression predicts. The cuts are those of 64 even steps that are nearest to \
    thirds of all sites' patients. The regression learned from the same outcomes.";

impl Reported for Model {
    type Settings = ClusterSettings;

    fn title(job: &Job) -> String {
        usual_title(job)
    }

    fn answer(&self, result: &RunResult, job: &Job, settings: &ClusterSettings) -> Markup {
        sentences(&Answer::new(result, job, self), settings)
    }

    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        settings: &ClusterSettings,
    ) -> Result<Chapters, FigureError> {
        let answer = Answer::new(result, job, self);
        Ok(Chapters {
            glance: html! {
                (groups(&answer))
                (curves::drawn(&answer, &job.cohort.outcome)?)
            },
            features: marks(&answer),
            sites: tables::sites(result),
            quality: tried(&answer, settings)?,
            course: html! {
                h2 { "How it went" }
                p {
                    "Patients were compared by run " (self.run) ". " (self.steps) " questions moved the centres of all divisions together; "
                    (format!("{:.1}", result.seconds)) " seconds."
                    @if self.unsettled > 0 { " " (self.unsettled) " divisions still moved at the end." }
                }
                @if !answer.is_of_thirds { p.note { (HOW) } }
            },
        })
    }

    fn files(&self, result: &RunResult, job: &Job) -> Vec<File> {
        files(result, job, self)
    }

    fn learnt(&self) -> Learnt<'_> {
        Learnt::default()
    }

    fn model<'r>(
        &'r self,
        result: &'r RunResult,
        job: &'r Job,
        _: &'r ClusterSettings,
    ) -> Option<impl Serialize> {
        Some(Answer::new(result, job, self))
    }

    fn said(
        &self,
        result: &RunResult,
        job: &Job,
        settings: &ClusterSettings,
        _: AskedAbout<'_>,
    ) -> Option<Said> {
        let answer = Answer::new(result, job, self);
        Some(Said::Answer(super::Answer {
            text: words(&answer, settings, &job.cohort.outcome),
            json: serde_json::to_string_pretty(&answer).map_err(io::Error::other),
            csv: answer.csv(&job.cohort),
        }))
    }
}

/// `clusters.csv` and `clusters.json`; where there are curves, `survival.csv`.
fn files(result: &RunResult, job: &Job, model: &Model) -> Vec<File> {
    let answer = Answer::new(result, job, model);
    let mut files = vec![
        File::table("clusters.csv", answer.csv(&job.cohort)),
        File::bytes("clusters.json", json(&answer)),
    ];
    if answer.groups.iter().any(|group| group.survival.is_some()) {
        let table = curves::csv(&answer, &job.cohort.outcome);
        files.push(File::table("survival.csv", table));
    }
    files
}

/// The answer in words: how many groups there are, each of them, and who is in none.
fn words(answer: &Answer, settings: &ClusterSettings, outcome: &OutcomeSpecification) -> String {
    let groups = answer.groups.iter().flat_map(|group| {
        let sentence = [group.sentence(answer.sites)];
        sentence.into_iter().chain(curves::lines(group, outcome))
    });
    let lines = [lead(answer, settings)].into_iter().chain(groups);
    let missing = curves::missing(outcome).map(str::to_owned);
    let lines: Vec<String> = lines.chain(in_none(answer)).chain(missing).collect();
    lines.join("\n")
}

fn sentences(answer: &Answer, settings: &ClusterSettings) -> Markup {
    html! {
        p.lead { (lead(answer, settings)) }
        @for group in &answer.groups { p { (group.sentence(answer.sites)) } }
        @if let Some(text) = in_none(answer) { p.note { (text) } }
    }
}

fn lead(answer: &Answer, settings: &ClusterSettings) -> String {
    let sites = sites_in_words(answer.sites);
    match answer.tried.iter().find(|one| one.shown) {
        None if answer.tried.is_empty() => {
            "The run ended before it looked for clusters.".to_owned()
        }
        None => format!(
            "The patients of {sites} have no stable clusters: of {} to {} clusters none recur in samples, or none \
             separate two outcomes.",
            settings.clusters_min, settings.clusters_max
        ),
        Some(_) if answer.is_of_thirds => {
            let patients = answer.grouped;
            let alike = not_different(answer);
            format!(
                "The {patients} patients of {sites} are in thirds of the risk that run {} predicts.{alike}",
                answer.compared_by
            )
        }
        Some(shown) => {
            let stable = match shown.stable {
                true => format!(
                    " that recur in samples (Jaccard index at least {:.2}).",
                    shown.least
                ),
                false => format!(
                    ", which are not stable: the least Jaccard index in samples is {:.2}, wanted {}.",
                    shown.least, settings.stability_min
                ),
            };
            let (patients, groups) = (answer.patients, shown.groups);
            let alike = not_different(answer);
            format!("The {patients} patients of {sites} form {groups} clusters{stable}{alike}")
        }
    }
}

fn not_different(answer: &Answer) -> &'static str {
    match answer.outcomes_differ {
        Some(false) => " Their outcomes do not differ beyond chance.",
        Some(true) | None => "",
    }
}

fn in_none(answer: &Answer) -> Option<String> {
    let left = answer.patients - answer.grouped;
    (left > 0).then(|| {
        format!(
            "{left} patients are at sites with too few for a small group, and are in no cluster."
        )
    })
}

fn groups(answer: &Answer) -> Markup {
    let kind = if answer.is_of_thirds {
        "third"
    } else {
        "cluster"
    };
    let head = [kind, "patients", "%", "sites", "outcomes"];
    let row = |group: &Group| {
        [
            match answer.is_of_thirds {
                true => group.name.clone(),
                false => group.group.to_string(),
            },
            group.patients.to_string(),
            format!("{:.0}", 100.0 * group.share),
            format!("{} of {}", group.sites, answer.sites),
            group.fared_text(),
        ]
    };
    html! {
        @if !answer.groups.is_empty() {
            h2 { @if answer.is_of_thirds { "Thirds of the predicted risk" } @else { "The clusters" } }
            @if answer.is_of_thirds { p.note { (THIRDS) } }
            p.note { "Patients of all sites together. A site has a cluster if at least one of its groups of patients lies in it. Shares and means with 95 % intervals." }
            table.wide {
                thead { tr { @for name in head { th scope="col" { (name) } } } }
                tbody {
                    @for group in &answer.groups {
                        tr { @for (name, cell) in head.iter().zip(row(group)) { td data-label=(name) { (cell) } } }
                    }
                }
            }
        }
    }
}

fn marks(answer: &Answer) -> Markup {
    let head = ["feature", "inside", "outside", "difference"];
    let row = |mark: &OneMark| {
        [
            mark.name.clone(),
            mark.in_words(mark.inside),
            mark.in_words(mark.outside),
            format!("{:+.2}", mark.difference),
        ]
    };
    // Of two groups each is all others of the other one.
    let described = match answer.groups.len() {
        2 => 1,
        several => several,
    };
    html! {
        @for group in answer.groups.iter().take(described) {
            @let marks = group.largest(MARKS);
            h2 { "What distinguishes " @if answer.is_of_thirds { "the " } (group.name) @if described == 1 { " from the other" } }
            @if marks.is_empty() {
                p { "No feature differs from all others by a fifth of a standard deviation." }
            } @else {
                table {
                    caption { "Means, or shares of patients, in the cluster and in all others. Their difference is in standard deviations, the largest first, from 0.2 on." }
                    thead { tr { @for name in head { th scope="col" { (name) } } } }
                    tbody {
                        @for mark in marks {
                            tr { @for (name, cell) in head.iter().zip(row(mark)) { td data-label=(name) { (cell) } } }
                        }
                    }
                }
            }
        }
    }
}

fn tried(answer: &Answer, settings: &ClusterSettings) -> Result<Markup, FigureError> {
    if answer.is_of_thirds {
        return Ok(Markup::default());
    }
    let score = |one: &OneTried| {
        Some(GroupScore {
            groups: one.groups,
            bias: one.bias?,
            stability: one.stability.clone(),
            by_chance: None,
        })
    };
    let scores: Vec<GroupScore> = answer.tried.iter().filter_map(score).collect();
    let svg = group_scores(&scores, settings.stability_min)?;
    let head = [
        "clusters",
        "bias",
        "gain by chance",
        "least stable",
        "stable",
    ];
    let row = |one: &OneTried| {
        [
            one.groups.to_string(),
            one.bias.map_or("-".to_owned(), figure),
            one.chance.map_or("-".to_owned(), probability),
            format!("{:.2}", one.least),
            if one.stable { "yes" } else { "no" }.to_owned(),
        ]
    };
    let caption = "Above, the unexplained part of the outcome. Below, how well each cluster recurs in samples of the small groups.";
    Ok(html! {
        (tables::figure("How many clusters", &svg, caption))
        @if !answer.tried.is_empty() {
            table {
                caption { "Each further cluster must explain more of the outcome than permuted outcomes do, at 0.05 over all numbers tried. The gain by chance is how often those gain as much over fewer clusters." }
                thead { tr { @for name in head { th scope="col" { (name) } } } }
                tbody {
                    @for one in &answer.tried {
                        tr { @for (name, cell) in head.iter().zip(row(one)) { td data-label=(name) { (cell) } } }
                    }
                }
            }
        }
    })
}

impl Answer {
    /// A row for each feature of each group.
    fn csv(&self, cohort: &CohortSpecification) -> io::Result<CsvTable> {
        let own = "in the unit of the feature; of a level its share";
        let mut table = CsvTable::new(
            "Shared clusters: a row per cluster and feature or level",
            About::Cohort(cohort),
            &[
                Column::whole("group", "cluster, from 1"),
                Column::whole("group_patients", "patients of the cluster"),
                Column::whole("group_sites", "hospitals that have any of them"),
                Column::text("feature", "name of the feature"),
                Column::text("level", "level; none of a number"),
                Column::whole("patients", "patients of the cluster with a value"),
                Column::number("mean", format!("mean in the cluster, {own}")),
                Column::number(
                    "deviation",
                    format!("standard deviation in the cluster, {own}"),
                ),
                Column::number(
                    "mean_of_others",
                    format!("mean of all other patients, {own}"),
                ),
                Column::number("difference", "difference in standard deviations"),
            ],
        )?;
        for group in &self.groups {
            for mark in &group.marks {
                table.row([
                    group.group.to_string(),
                    group.patients.to_string(),
                    group.sites.to_string(),
                    mark.feature.clone(),
                    mark.level.clone().unwrap_or_default(),
                    mark.patients.to_string(),
                    mark.inside.to_string(),
                    mark.deviation.to_string(),
                    mark.outside.to_string(),
                    mark.difference.to_string(),
                ])?;
            }
        }
        Ok(table)
    }
}
