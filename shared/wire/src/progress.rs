//! What an operator sees: progress and result.

use crate::assembly::{Frames, Header};
use crate::error::WireError;
use crate::generated as pb;
use crate::parts::{Declared, IncomingParts, OutgoingParts, RowCounts, shape};
use crate::trees;
use crate::values::{
    at_most, count, evaluations, evaluations_to_proto, finite, finite_if_any, label, paragraph,
    present, run_id, shortened, summed, text,
};
use protocol::limits::{CANDIDATES_MAX, JOB_LENGTH_MAX, MISSING_SHARES_MAX, SITES_MAX};
use protocol::progress::{
    Ending, FeatureResult, MissingShare, Progress, RoundRow, RunResult, SelectionRow, SiteResult,
};

pub(crate) fn progress_to_proto(progress: Progress) -> pb::Progress {
    pb::Progress {
        run: progress.run.as_str().to_owned(),
        phase: shortened(progress.phase),
        round: progress.round,
        round_limit: progress.round_limit,
        objective: progress.objective,
        primal_residual: progress.primal_residual,
        dual_residual: progress.dual_residual,
        sites_connected: progress.sites_connected,
        sites: progress.sites,
        waiting_for: progress.waiting_for,
        deadline_seconds: progress.deadline_seconds,
        ending: progress.ending.map(ending_to_proto),
    }
}

pub(crate) fn progress(progress: pb::Progress) -> Result<Progress, WireError> {
    at_most("names of sites", progress.waiting_for.len(), SITES_MAX)?;
    let name = |name| label("a site's name", name);
    Ok(Progress {
        run: run_id(&progress.run)?,
        phase: paragraph("a phase", progress.phase)?,
        round: progress.round,
        round_limit: progress.round_limit,
        objective: finite_if_any("the objective", progress.objective)?,
        primal_residual: finite_if_any("the primal residual", progress.primal_residual)?,
        dual_residual: finite_if_any("the dual residual", progress.dual_residual)?,
        sites_connected: progress.sites_connected,
        sites: progress.sites,
        waiting_for: progress
            .waiting_for
            .into_iter()
            .map(name)
            .collect::<Result<_, _>>()?,
        deadline_seconds: finite("the deadline", progress.deadline_seconds)?,
        ending: progress.ending.map(ending).transpose()?,
    })
}

/// Cuts a result into frames.
pub(crate) fn result_frames(result: RunResult) -> Frames<pb::ResultFrame> {
    let rows_of = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let header = pb::RunResult {
        run: result.run.as_str().to_owned(),
        job: result.job,
        seed: result.seed,
        version: result.version,
        ending: Some(ending_to_proto(result.ending)),
        objective: result.objective,
        seconds: result.seconds,
        metric: result.metric.as_ref().map(shape),
        rounds: rows_of(result.rounds.len()),
        sites: rows_of(result.sites.len()),
        features: rows_of(result.features.len()),
        dropped: rows_of(result.dropped.len()),
        notes: rows_of(result.notes.len()),
        forest: result.forest.as_ref().map(trees::forest_to_proto),
        selection: result.selection.iter().map(selection_to_proto).collect(),
    };
    let common = result.forest.map(|forest| forest.trees);
    let rows = pb::RowsChunk {
        rounds: result.rounds.into_iter().map(round_to_proto).collect(),
        sites: result.sites.into_iter().map(site_to_proto).collect(),
        features: result.features.into_iter().map(feature_to_proto).collect(),
        dropped: result.dropped.into_iter().map(shortened).collect(),
        notes: result.notes.into_iter().map(shortened).collect(),
    };
    Frames::new(
        header,
        OutgoingParts::result(result.metric, rows).with_trees(common),
    )
}

impl Header for pb::RunResult {
    type Message = RunResult;

    fn declared(&self) -> Result<Declared, WireError> {
        Ok(Declared {
            matrices: self.metric.into_iter().collect(),
            nodes: match self.forest.as_ref() {
                Some(forest) => trees::declared_nodes(present("trees", forest.trees.as_ref())?)?,
                None => 0,
            },
            rows: RowCounts {
                rounds: self.rounds as usize,
                sites: self.sites as usize,
                features: self.features as usize,
                dropped: self.dropped as usize,
                notes: self.notes as usize,
            },
            ..Declared::default()
        })
    }

    fn complete(self, mut parts: IncomingParts) -> Result<RunResult, WireError> {
        let rows = parts.take_rows();
        let note = |note| paragraph("a note", note);
        let dropped = |name| paragraph("a row's name", name);
        Ok(RunResult {
            run: run_id(&self.run)?,
            job: text("a job's text", self.job, JOB_LENGTH_MAX)?,
            seed: self.seed,
            version: label("a version", self.version)?,
            ending: ending(present("ending", self.ending)?)?,
            rounds: rows
                .rounds
                .into_iter()
                .map(round)
                .collect::<Result<_, _>>()?,
            objective: finite_if_any("the objective", self.objective)?,
            seconds: finite("the duration", self.seconds)?,
            sites: rows.sites.into_iter().map(site).collect::<Result<_, _>>()?,
            selection: {
                at_most("candidates", self.selection.len(), CANDIDATES_MAX.pow(3))?;
                let rows = self.selection.into_iter().map(selection);
                rows.collect::<Result<_, _>>()?
            },
            features: rows
                .features
                .into_iter()
                .map(feature)
                .collect::<Result<_, _>>()?,
            dropped: rows
                .dropped
                .into_iter()
                .map(dropped)
                .collect::<Result<_, _>>()?,
            metric: match self.metric {
                Some(_) => Some(parts.take_matrix()?),
                None => None,
            },
            forest: match self.forest {
                Some(forest) => Some(trees::forest(forest, parts.take_nodes())?),
                None => None,
            },
            notes: rows.notes.into_iter().map(note).collect::<Result<_, _>>()?,
        })
    }
}

fn ending_to_proto(ending: Ending) -> pb::Ending {
    use pb::ending::Ending as Kind;
    let ending = match ending {
        Ending::Converged => Kind::Converged(pb::Converged {}),
        Ending::Completed => Kind::Completed(pb::Completed {}),
        Ending::RoundLimit => Kind::RoundLimit(pb::RoundLimit {}),
        Ending::Cancelled => Kind::Cancelled(pb::Cancelled {}),
        Ending::Failed { code, text } => Kind::Failed(pb::Failed {
            code,
            text: shortened(text),
        }),
    };
    pb::Ending {
        ending: Some(ending),
    }
}

fn ending(ending: pb::Ending) -> Result<Ending, WireError> {
    use pb::ending::Ending as Kind;
    Ok(match present("ending", ending.ending)? {
        Kind::Converged(_) => Ending::Converged,
        Kind::Completed(_) => Ending::Completed,
        Kind::RoundLimit(_) => Ending::RoundLimit,
        Kind::Cancelled(_) => Ending::Cancelled,
        Kind::Failed(failed) => Ending::Failed {
            code: label("a code", failed.code)?,
            text: paragraph("a failure", failed.text)?,
        },
    })
}

fn round_to_proto(row: RoundRow) -> pb::RoundRow {
    pb::RoundRow {
        round: row.round,
        objective: row.objective,
        primal_residual: row.primal_residual,
        dual_residual: row.dual_residual,
        penalty: row.penalty,
        seconds: row.seconds,
        sites_answered: row.sites_answered,
    }
}

fn round(row: pb::RoundRow) -> Result<RoundRow, WireError> {
    Ok(RoundRow {
        round: row.round,
        objective: finite_if_any("the objective of a round", row.objective)?,
        primal_residual: finite("the primal residual of a round", row.primal_residual)?,
        dual_residual: finite("the dual residual of a round", row.dual_residual)?,
        penalty: finite("the penalty of a round", row.penalty)?,
        seconds: finite("the time of a round", row.seconds)?,
        sites_answered: row.sites_answered,
    })
}

fn selection_to_proto(row: &SelectionRow) -> pb::SelectionRow {
    pb::SelectionRow {
        lambda_sparsity: row.lambda_sparsity,
        rank: row.rank,
        neighbours: row.neighbours,
        right: row.right,
        wrong: row.wrong,
        chosen: row.chosen,
    }
}

fn selection(row: pb::SelectionRow) -> Result<SelectionRow, WireError> {
    Ok(SelectionRow {
        lambda_sparsity: finite("lambda_1 of a candidate", row.lambda_sparsity)?,
        rank: row.rank,
        neighbours: row.neighbours,
        right: summed("patients classified right", row.right)?,
        wrong: summed("patients classified wrong", row.wrong)?,
        chosen: row.chosen,
    })
}

fn site_to_proto(site: SiteResult) -> pb::SiteResult {
    pb::SiteResult {
        name: site.name,
        patients: site.patients,
        pairs: site.pairs,
        bytes_sent: site.bytes_sent,
        bytes_received: site.bytes_received,
        rounds_missed: site.rounds_missed,
        evaluation: evaluations_to_proto(site.evaluation),
        missing: site.missing.into_iter().map(missing_to_proto).collect(),
        errors: trees::errors_to_proto(site.errors),
        importance: site
            .importance
            .into_iter()
            .map(trees::importance_to_proto)
            .collect(),
        trees: site.trees,
    }
}

fn site(site: pb::SiteResult) -> Result<SiteResult, WireError> {
    at_most("missing shares", site.missing.len(), MISSING_SHARES_MAX)?;
    let evaluation = evaluations(site.evaluation)?;
    let tables = evaluation.iter().filter_map(|one| one.confusion.as_ref());
    for cell in tables.flatten().flatten() {
        count("patients of a table", *cell)?;
    }
    let errors = trees::errors(site.errors)?;
    for sums in errors.iter().filter_map(|one| one.sums.as_ref()) {
        count("patients behind an error", sums.total)?;
    }
    Ok(SiteResult {
        name: label("a site's name", site.name)?,
        patients: count("patients of a site", site.patients)?,
        pairs: count("pairs of a site", site.pairs)?,
        bytes_sent: summed("bytes that a site sent", site.bytes_sent)?,
        bytes_received: summed("bytes that a site received", site.bytes_received)?,
        rounds_missed: site.rounds_missed,
        evaluation,
        missing: site
            .missing
            .into_iter()
            .map(missing)
            .collect::<Result<_, _>>()?,
        errors,
        importance: trees::importances(site.importance)?,
        trees: site.trees,
    })
}

fn missing_to_proto(missing: MissingShare) -> pb::MissingShare {
    pb::MissingShare {
        feature: shortened(missing.feature),
        share: missing.share,
    }
}

fn missing(missing: pb::MissingShare) -> Result<MissingShare, WireError> {
    Ok(MissingShare {
        feature: paragraph("a feature's name", missing.feature)?,
        share: finite("the missing share of a site", missing.share)?,
    })
}

fn feature_to_proto(feature: FeatureResult) -> pb::FeatureResult {
    pb::FeatureResult {
        name: shortened(feature.name),
        mean: feature.mean,
        scale: feature.scale,
        missing_share: feature.missing_share,
    }
}

fn feature(feature: pb::FeatureResult) -> Result<FeatureResult, WireError> {
    Ok(FeatureResult {
        name: paragraph("a row's name", feature.name)?,
        mean: finite("the mean of a feature", feature.mean)?,
        scale: finite("the scale of a feature", feature.scale)?,
        missing_share: finite("the missing share of a feature", feature.missing_share)?,
    })
}
