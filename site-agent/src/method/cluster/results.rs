//! What a run that looks for groups of patients leaves at its site: of which group each patient is, and the site's own share of each
//! beside that of all sites.

use crate::method::SiteRun;
use crate::patients::{ResultsError, replace};
use crate::source::Patients;
use ndarray::Array2;
use protocol::cohort::OutcomeKind;
use protocol::message::cluster::{Marking, nearest};
use protocol::message::neighbours::Noised;
use protocol::method::cluster::model::Alike;
use report::{
    About, Column, CsvTable, File, Part, Shares, group_name, outcome_sentence, shared_curves, sheet,
};
use serde_json::json;
use similarity::cohort::Outcome;
use similarity::uses::cases::Fared;
use std::io;
use std::path::Path;

/// The groups, and the patients of the site.
pub(super) struct ClusterResults<'r> {
    /// Where the run places every patient.
    pub(super) vectors: &'r Array2<f64>,
    pub(super) asked: &'r Marking,
    pub(super) site: &'r SiteRun,
}

/// A group at this site, and at all.
struct Beside {
    /// Patients, and their share.
    here: (usize, f64),
    everywhere: (u64, f64),
    /// How they fared: the share of the second of two classes, the mean of a number.
    fared_here: Option<f64>,
    fared_everywhere: Option<f64>,
}

/// Writes `clusters.csv`, `clusters.json` and `report.html` into `folder`, which is replaced whole.
pub(super) fn write(results: &ClusterResults<'_>, folder: &Path) -> Result<(), ResultsError> {
    let found: Vec<(usize, f64)> = results
        .vectors
        .outer_iter()
        .map(|row| nearest(row, results.asked.centres.view()))
        .collect();
    let beside = beside(results, &found);
    replace(
        folder,
        vec![
            File::table(
                "clusters.csv",
                patients_csv(&results.site.cohort.patients, &found),
            ),
            File::bytes("clusters.json", groups_json(&beside)),
            File::bytes(
                "report.html",
                page(results, &beside).map(String::into_bytes),
            ),
        ],
    )
}

fn patients_csv(patients: &Patients, found: &[(usize, f64)]) -> io::Result<CsvTable> {
    let columns = [
        Column::patient(),
        Column::whole("group", "cluster with the nearest centre, from 1"),
        Column::number("distance", "distance from this centre"),
    ];
    let title = "Shared clusters: a row per patient";
    let mut table = CsvTable::new(title, About::Course, &columns)?;
    for (row, (group, square)) in found.iter().enumerate() {
        let distance = square.sqrt().to_string();
        table.row([patients.name(row), (group + 1).to_string(), distance])?;
    }
    Ok(table)
}

#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn beside(results: &ClusterResults<'_>, found: &[(usize, f64)]) -> Vec<Beside> {
    let all: u64 = results.asked.fared.iter().map(Alike::count).sum();
    let outcome = results.site.cohort.cohort.outcome();
    let kind = &results.site.job.cohort.outcome.kind;
    let one = |(group, fared): (usize, &Alike)| {
        let rows = found.iter().enumerate().filter(|(_, one)| one.0 == group);
        let rows: Vec<usize> = rows.map(|(row, _)| row).collect();
        Beside {
            here: (rows.len(), rows.len() as f64 / found.len().max(1) as f64),
            everywhere: (fared.count(), fared.count() as f64 / all.max(1) as f64),
            fared_here: own(outcome, &rows),
            fared_everywhere: pooled(kind, fared),
        }
    };
    results.asked.fared.iter().enumerate().map(one).collect()
}

#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn own(outcome: &Outcome, rows: &[usize]) -> Option<f64> {
    match Fared::of(outcome, rows) {
        Fared::Classes(shares) => match shares.as_slice() {
            [_, second] => Some(second.share.value),
            [] | [_] | [_, _, _, ..] => None,
        },
        Fared::Mean(mean) => Some(mean.value),
        Fared::Survival(_) => None,
    }
    .filter(|_| !rows.is_empty())
}

#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn pooled(kind: &OutcomeKind, fared: &Alike) -> Option<f64> {
    let patients = fared.patients;
    match kind {
        OutcomeKind::Numeric => fared.sums.first().map(|sum| sum.sum / patients),
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            let share = |second: &Noised| (second.sum / patients).clamp(0.0, 1.0);
            fared
                .classes
                .get(1)
                .map(share)
                .filter(|_| fared.classes.len() == 2)
        }
        OutcomeKind::Survival { .. } => None,
    }
    .filter(|_| patients > 0.0)
}

fn groups_json(beside: &[Beside]) -> io::Result<Vec<u8>> {
    let one = |(place, one): (usize, &Beside)| {
        json!({
            "group": place + 1,
            "patients": one.here.0,
            "share": one.here.1,
            "patients_of_all_sites": one.everywhere.0,
            "share_of_all_sites": one.everywhere.1,
            "outcome": one.fared_here,
            "outcome_of_all_sites": one.fared_everywhere,
        })
    };
    let groups: Vec<_> = beside.iter().enumerate().map(one).collect();
    let mut bytes = serde_json::to_vec_pretty(&json!({
        "about": "each of this site's own patients by the nearest centre; of this file nothing has left the site",
        "groups": groups,
    }))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn page(results: &ClusterResults<'_>, beside: &[Beside]) -> io::Result<String> {
    let site = results.site;
    let patients: usize = beside.iter().map(|one| one.here.0).sum();
    let hundred = |share: f64| format!("{:.0} %", 100.0 * share);
    let lacking: Vec<String> = beside
        .iter()
        .enumerate()
        .filter(|(_, one)| one.here.0 == 0)
        .map(|(place, _)| group_name(&site.job, place))
        .collect();
    let mut sentences = vec![format!(
        "This site's {patients} patients in the {} groups that all sites share.",
        beside.len()
    )];
    let (counts, of) = (&site.classes, &site.job.cohort.outcome);
    sentences.push(outcome_sentence(
        of,
        counts,
        site.cohort.cohort.patients() as u64,
    ));
    if !lacking.is_empty() {
        let text = format!("Nobody here is in {}.", lacking.join(", nor in "));
        sentences.push(text);
    }
    sentences.push(
        "Each patient belongs to the group with the nearest centre. Nothing of this site alone has left it.".to_owned(),
    );
    let bars = beside.iter().enumerate().flat_map(|(place, one)| {
        let here = format!("{} ({})", hundred(one.here.1), one.here.0);
        let all = format!("{} ({})", hundred(one.everywhere.1), one.everywhere.0);
        [
            (
                format!("{}, here", group_name(&site.job, place)),
                one.here.1,
                here,
            ),
            (
                format!("{}, all sites", group_name(&site.job, place)),
                one.everywhere.1,
                all,
            ),
        ]
    });
    let mut shares = vec![Shares {
        title: "Patients in each group",
        bars: bars.collect(),
        caption: "Shares of this site's patients, and of all sites' in small groups.".to_owned(),
    }];
    shares.extend(outcomes(site, beside));
    let title = format!(
        "{}: the shared groups, for this site's patients",
        site.job.name
    );
    let curves = shared_curves(&site.job, &results.asked.fared).map_err(io::Error::other)?;
    let shares = shares.into_iter().map(Part::Shares);
    let parts: Vec<Part> = shares.chain(curves.map(Part::Figure)).collect();
    Ok(sheet(&title, &sentences, &parts))
}

/// Of two classes, how many patients of each cluster are of the second.
fn outcomes(site: &SiteRun, beside: &[Beside]) -> Option<Shares> {
    let outcome = &site.job.cohort.outcome;
    let classes = outcome.classes();
    let [_, second] = classes.as_slice() else {
        return None;
    };
    let bars = beside.iter().enumerate().flat_map(|(place, one)| {
        let bar = |whose: &str, share: Option<f64>| {
            let name = format!("{}, {whose}", group_name(&site.job, place));
            share.map(|share| (name, share, format!("{:.0} %", 100.0 * share)))
        };
        [
            bar("here", one.fared_here),
            bar("all sites", one.fared_everywhere),
        ]
    });
    Some(Shares {
        title: "Outcomes",
        bars: bars.flatten().collect(),
        caption: format!(
            "{}: {second}, a share of the patients of each group.",
            outcome.label
        ),
    })
}
