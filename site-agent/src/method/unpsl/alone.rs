//! UnPSL by Algorithm 1 of the paper on one cohort, without a federation.

use super::objectives::{labels, objective, without};
use super::{fault, no_folds};
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::run::stop::Stop;
use protocol::failure::Code;
use protocol::method::unpsl::settings::UnpslSettings;
use similarity::learn::unpsl::accelerated::{
    Knowledge, LOWERED, RelativeSparsity, Search, SearchSettings, search_sites,
};
use similarity::learn::unpsl::{self, LocalLimits, LocalRound, LocalRun, Settings, SiteObjective};

/// Rounds of Algorithm 1 for every round that the job allows: these cross no network.
const ROUNDS_A_ROUND: u32 = 10;

/// What Algorithm 1 found from the best of several starts.
pub struct BestStart {
    /// The start, from 0.
    pub start: u32,
    /// What came of it.
    pub run: LocalRun,
    /// lambda_1 where it followed from the data.
    pub relative: Option<f64>,
}

/// UnPSL by Algorithm 1 on one cohort alone, or on it without one fold. `settings` are the job's, with what was chosen;
/// `observe` sees every round as it closes, with the number of its start. Where the job states no lambda_1, it follows from the
/// data as in a federation.
pub(in crate::method) fn learn(
    site: &SiteRun,
    prepared: &Prepared,
    settings: &UnpslSettings,
    fold: Option<u32>,
    observe: &mut dyn FnMut(u32, &LocalRound),
) -> Result<BestStart, Stop> {
    let mut of_part = match (fold, settings.folds()) {
        (Some(_), Some(folds)) => settings.objective_without_a_fold(folds),
        _ => settings.objective,
    };
    let labels = labels(site, settings.supervision)?;
    let made = |of_part: &Settings| match fold {
        None => objective(prepared, &labels, of_part, (site.folds, None)),
        Some(fold) => {
            let folds = site.parted(settings.folds().ok_or_else(no_folds)?)?;
            let seeds = (site.folds, None);
            let whole = unpsl::summarise(&labels, of_part.pairs, site.folds);
            without(
                seeds,
                prepared,
                of_part,
                (&labels, &whole),
                (&folds, &[fold]),
            )
        }
    };
    let mut lowerings = 0;
    if let Some(relative) = settings.relative_lambda() {
        of_part.lambda_sparsity = usual_lambda(site, &made(&of_part)?, relative)?;
        lowerings = relative.lowerings;
    }
    loop {
        let found = best_start(site, &made(&of_part)?, settings, observe)?;
        let is_empty = found.run.matrix.iter().all(|entry| *entry == 0.0);
        if lowerings == 0 || !is_empty {
            let relative = settings.relative_lambda().map(|_| of_part.lambda_sparsity);
            return Ok(BestStart { relative, ..found });
        }
        lowerings -= 1;
        of_part.lambda_sparsity *= LOWERED;
    }
}

/// What lambda_1 follows from the cohort alone.
fn usual_lambda(
    site: &SiteRun,
    objective: &SiteObjective,
    relative: RelativeSparsity,
) -> Result<f64, Stop> {
    let (own, features) = (objective.settings(), objective.features());
    let search = SearchSettings {
        lambda_sparsity: own.lambda_sparsity,
        form: own.form,
        tolerance: 1.0,
        tolerance_residual: f64::INFINITY,
    };
    let start = unpsl::start(own, features, site.seed, 0);
    let search = Search::new(search, start, features);
    let search = search.relative(RelativeSparsity::of_share(relative.share));
    let mut known = match UnpslSettings::is_wide(features) {
        true => Knowledge::wide(),
        false => Knowledge::new(),
    };
    // Of wide data the first answer says which rows to look at.
    let rounds = 1 + usize::from(UnpslSettings::is_wide(features));
    let sites = std::slice::from_ref(objective);
    let search = search_sites(sites, search, &mut known, rounds, &mut |_, _| {});
    Ok(search.map_err(fault)?.lambda_sparsity())
}

/// The best of the starts under one lambda_1.
fn best_start(
    site: &SiteRun,
    objective: &SiteObjective,
    settings: &UnpslSettings,
    observe: &mut dyn FnMut(u32, &LocalRound),
) -> Result<BestStart, Stop> {
    let pairs = objective.summary().pairs.total();
    let penalty = settings
        .penalty
        .unwrap_or_else(|| settings.objective.penalty_start(1, pairs));
    let limits = LocalLimits {
        tolerance_absolute: settings.tolerance_absolute,
        tolerance_relative: settings.tolerance_relative,
        rounds: (ROUNDS_A_ROUND * settings.round_limit) as usize,
        ..LocalLimits::new(penalty)
    };
    let mut best: Option<BestStart> = None;
    for start in 0..settings.starts {
        let index = u64::from(start);
        let from = unpsl::start(&settings.objective, objective.features(), site.seed, index);
        let run = unpsl::learn_observed(objective, from, &limits, &mut |round| {
            observe(start, round);
        })
        .map_err(fault)?;
        if best
            .as_ref()
            .is_none_or(|best| run.objective < best.run.objective)
        {
            let relative = None;
            best = Some(BestStart {
                start,
                run,
                relative,
            });
        }
    }
    best.ok_or_else(|| Stop::failed(Code::Settings, "there is no start to learn from"))
}
