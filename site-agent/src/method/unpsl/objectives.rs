//! The objectives of a site and of its folds: made when they are first asked about, and kept.

use super::{Learner, fault};
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::run::stop::Stop;
use protocol::failure::Code;
use protocol::message::Summary;
use protocol::message::unpsl::Part;
use protocol::method::unpsl::supervision::Supervision;
use rayon::prelude::*;
use similarity::learn::unpsl::selection::Folds;
use similarity::learn::unpsl::{Labels, Pairs, Settings, SiteObjective};
use similarity::numeric::seed::Seed;

/// Bytes of the objectives that are kept at most, but for one.
const OBJECTIVES_BYTES_MAX: usize = 5 << 27;
/// Objectives that are made side by side: each takes several times its memory while it is made.
const MADE_AT_ONCE: usize = 2;
/// Bytes of a patient in a group: the row of the matrix, and the class.
const PATIENT_BYTES: usize = 8;

impl Learner {
    /// The site's part of the objective.
    pub(super) fn objective(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        part: Part,
    ) -> Result<&SiteObjective, Stop> {
        let place = self.objectives.iter().position(|(made, _)| *made == part);
        let place = match place {
            Some(place) => place,
            None => {
                // The latest goes first, where not all fit: those before it are asked about again first.
                let most = self.objectives_max(prepared);
                self.objectives.truncate(most - 1);
                let objective = self.make_objective(site, prepared, part)?;
                self.objectives.push((part, objective));
                self.objectives.len() - 1
            }
        };
        Ok(&self.objectives[place].1)
    }

    /// Makes what is not made yet of these objectives, some side by side, where all of them are kept: much of making one waits for one core.
    pub(super) fn make_ready(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        parts: &[Part],
    ) -> Result<(), Stop> {
        let mut missing: Vec<Part> = Vec::new();
        for part in parts {
            let is_made = self.objectives.iter().any(|(made, _)| made == part);
            if !is_made && !missing.contains(part) {
                missing.push(*part);
            }
        }
        if self.objectives.len() + missing.len() > self.objectives_max(prepared) {
            return Ok(());
        }
        for some in missing.chunks(MADE_AT_ONCE) {
            let make = |part: &Part| Ok((*part, self.make_objective(site, prepared, *part)?));
            let made: Vec<Result<_, Stop>> = some.par_iter().map(make).collect();
            let made: Result<Vec<_>, Stop> = made.into_iter().collect();
            self.objectives.extend(made?);
        }
        Ok(())
    }

    /// How many objectives are kept.
    fn objectives_max(&self, prepared: &Prepared) -> usize {
        objectives_max(prepared.matrix().dim(), self.settings.objective.pairs)
    }

    fn make_objective(
        &self,
        site: &SiteRun,
        prepared: &Prepared,
        part: Part,
    ) -> Result<SiteObjective, Stop> {
        let mut settings = self.settings.objective;
        // A rank to choose from may be larger; what is asked has the rank that it has.
        settings.rank = settings.rank.min(prepared.matrix().ncols());
        settings.form = part.form;
        let labels = labels(site, self.settings.supervision)?;
        // Groups by the run's seed would be others in each run: sums over them, slightly different, would come down to single patients.
        let seeds = (site.folds, Some(site.folds));
        match part.left_out().as_slice() {
            [] => objective(prepared, &labels, &settings, seeds),
            left_out => {
                let folds = self.folds(site)?;
                let whole = (&labels, &self.drawn(site, &labels));
                without(seeds, prepared, &settings, whole, (&folds, left_out))
            }
        }
    }
}

/// How many objectives of so many patients with so many columns are kept. Those of groups have no matrix of their own.
fn objectives_max((patients, columns): (usize, usize), pairs: Pairs) -> usize {
    let of_patient = match pairs {
        Pairs::All => columns * size_of::<f64>(),
        Pairs::PerPatient(_) => PATIENT_BYTES,
    };
    // The products of the columns, and the axes there and back.
    let of_columns = 3 * columns.pow(2) * size_of::<f64>();
    let bytes = patients.saturating_mul(of_patient) + of_columns;
    (OBJECTIVES_BYTES_MAX / bytes.max(1)).max(1)
}

/// Of groups, and of what hides the site's own numbers in a sum: none where no other site adds to it.
pub(super) type Seeds = (Seed, Option<Seed>);

/// The objective among the patients of all folds but one, or two.
pub(super) fn without(
    seeds: Seeds,
    prepared: &Prepared,
    settings: &Settings,
    (labels, whole): (&Labels, &Summary),
    (folds, left_out): (&Folds, &[u32]),
) -> Result<SiteObjective, Stop> {
    let is_fold = |fold: &u32| (*fold as usize) < folds.count();
    if !left_out.iter().all(is_fold) {
        let text = format!("found folds {left_out:?}, wanted some of {}", folds.count());
        return Err(Stop::failed(Code::Protocol, text));
    }
    let rows = folds.without(left_out);
    let training = labels.among(&rows);
    let patients = prepared.patients.some(&rows);
    let totals = (&prepared.totals, whole);
    let pooled = prepared.pooled.clone();
    SiteObjective::of_part(patients, &training, settings, totals, seeds, pooled).map_err(fault)
}

pub(super) fn labels(site: &SiteRun, supervision: Supervision) -> Result<Labels, Stop> {
    let codes = site.classes_of()?.clone();
    let judged = || {
        let judged = site.cohort.judged().cloned();
        judged.ok_or_else(|| Stop::failed(Code::Cohort, "the judged pairs were not read"))
    };
    Ok(match supervision {
        Supervision::Outcome => Labels::Classes(codes),
        Supervision::Physician => Labels::Judged(judged()?),
        Supervision::Both { times } => Labels::Both {
            codes,
            judged: judged()?,
            times,
        },
    })
}

pub(super) fn objective(
    prepared: &Prepared,
    labels: &Labels,
    settings: &Settings,
    seeds: Seeds,
) -> Result<SiteObjective, Stop> {
    let patients = prepared.patients.clone();
    let (totals, pooled) = (&prepared.totals, prepared.pooled.clone());
    SiteObjective::of(patients, labels, settings, totals, seeds, pooled).map_err(fault)
}
