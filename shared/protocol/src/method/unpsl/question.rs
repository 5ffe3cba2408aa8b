//! What a job of UnPSL asks of a site.

use super::message::{Centre, Differentiating, Finishing, Part, Request, Round, Validating};
use super::settings::{UnpslSettings, Validation};
use crate::cohort::CohortSpecification;
use crate::failure::Refusal;
use crate::limits::{ACTIVE_ROWS_MAX, BATCH_ENTRIES_MAX, LOCAL_TOLERANCES, PENALTIES, TOTALS_MAX};
use crate::message::{self, CORRELATED, MOMENTS, PREPARED, Preparing, QUANTILES, Quartiles};
use crate::question::{Known, after, unasked, wanted};
use ndarray::Array2;
use similarity::learn::unpsl::{Centring, CorrelationScope, SecondMoments, Totals};

/// Judges a question in a run of so many sites.
pub(crate) fn judge(
    settings: &UnpslSettings,
    cohort: &CohortSpecification,
    sites: usize,
    request: &message::Request,
    known: Known<'_>,
) -> Result<(), Refusal> {
    let gridded = cohort.grids_of_quartiles().len();
    match request {
        message::Request::Describe | message::Request::Moments => Ok(()),
        message::Request::Quantiles if gridded == 0 => unasked("a job with medians"),
        message::Request::Quantiles => after(MOMENTS, known),
        message::Request::Prepare(preparing) => {
            after(MOMENTS, known)?;
            if gridded > 0 {
                after(QUANTILES, known)?;
            }
            prepares(settings, preparing, cohort.features.len(), gridded, sites)
        }
        message::Request::Correlate(second_moments) => {
            let rows = ready(settings, false, known)?;
            correlates(settings, second_moments, rows)
        }
        message::Request::Unpsl(request) => {
            let rows = ready(settings, true, known)?;
            own(settings, request, rows, known.validates)
        }
        // Closed by default: whatever else is asked, this job does not ask it.
        _ => unasked("what the job's method does"),
    }
}

/// `validates` is whether the site takes part in a validation that the job does not insist on.
fn own(
    settings: &UnpslSettings,
    request: &Request,
    rows: usize,
    validates: bool,
) -> Result<(), Refusal> {
    let folds = settings.folds().filter(|_| {
        let is_usual = settings.parts().1.is_some();
        validates || !is_usual
    });
    match request {
        Request::Differentiate(asked) => judge_differentiation(settings, asked, rows, folds),
        Request::Round(round) => judge_round(settings, round, rows, folds),
        Request::Validate(validating) => judge_validation(settings, validating, rows),
        Request::Finish(Finishing {
            consensus,
            form,
            neighbours,
            folds: models,
        }) => {
            fits(settings, consensus, rows, settings.selection.is_some())?;
            for model in models.iter() {
                fits(settings, model, rows, settings.selection.is_some())?;
            }
            let wanted_folds = folds.filter(|_| settings.validation != Validation::None);
            let is_validation =
                models.is_empty() || wanted_folds.map(|folds| folds as usize) == Some(models.len());
            wanted(is_validation, "a metric of each of the job's folds")?;
            is_part(settings, Part::whole(*form), folds)?;
            let listed = match &settings.selection {
                Some(selection) => selection.neighbours.contains(neighbours),
                None => *neighbours == settings.neighbours,
            };
            wanted(listed, "the job's neighbours")
        }
    }
}

/// Derivatives at metrics that are each learnt without one of the job's folds, of so many rows.
pub(crate) fn of_folds(
    settings: &UnpslSettings,
    asked: &Differentiating,
    rows: usize,
) -> Result<(), Refusal> {
    let are_folds = asked.parts.iter().all(|part| part.fold.is_some());
    wanted(are_folds, "metrics of folds")?;
    judge_differentiation(settings, asked, rows, settings.folds())
}

/// A metric of each of the job's folds, or none, of so many rows.
pub(crate) fn are_of_folds(
    settings: &UnpslSettings,
    metrics: &[Array2<f64>],
    rows: usize,
) -> Result<(), Refusal> {
    let folds = settings.folds().map(|folds| folds as usize);
    let fit = metrics.is_empty() || folds == Some(metrics.len());
    wanted(fit, "a metric of each of the job's folds")?;
    let mut metrics = metrics.iter();
    metrics.try_for_each(|metric| fits(settings, metric, rows, false))
}

fn prepares(
    settings: &UnpslSettings,
    preparing: &Preparing,
    features: usize,
    gridded: usize,
    sites: usize,
) -> Result<(), Refusal> {
    let Preparing {
        moments,
        quartiles,
        curves,
        within,
        totals,
    } = preparing;
    let is_share = |share: &f64| (0.0..=1.0).contains(share);
    let usable = match (settings.objective.centring, within) {
        (Centring::Pooled, None) => true,
        (Centring::Site, Some(shares)) => shares.iter().all(is_share),
        (Centring::Pooled, Some(_)) | (Centring::Site, None) => false,
    };
    wanted(usable, "the job's centring")?;
    wanted(moments.len() == features, "moments of each feature")?;
    let usable = quartiles.len() == gridded && quartiles.iter().all(rising) && curves.is_empty();
    wanted(usable, "quartiles of each gridded column")?;
    wanted(are_sums(totals, sites), "sums over the job's sites")
}

/// No more sites than the job has, and counts that can be added up.
fn are_sums(totals: &Totals, sites: usize) -> bool {
    let counts = [
        totals.patients,
        totals.pairs.similar,
        totals.pairs.dissimilar,
    ];
    (1..=sites as u64).contains(&totals.sites) && counts.iter().all(|count| *count <= TOTALS_MAX)
}

fn judge_differentiation(
    settings: &UnpslSettings,
    asked: &Differentiating,
    rows: usize,
    folds: Option<u32>,
) -> Result<(), Refusal> {
    let Differentiating {
        metrics,
        parts,
        rows: active,
    } = asked;
    // The folds of a validation are learnt by the accelerated consensus in every job.
    let is_validation =
        settings.selection.is_none() && parts.iter().all(|part| part.fold.is_some());
    wanted(
        settings.is_accelerated() || is_validation,
        "a job of the accelerated consensus",
    )?;
    let lengths = [parts.len(), active.len()];
    wanted(
        !metrics.is_empty() && lengths == [metrics.len(); 2],
        "a part of each metric, and its rows",
    )?;
    let entries = active
        .iter()
        .zip(metrics.iter())
        .map(|(active, metric)| Differentiating::entries(active.as_deref(), rows, metric.ncols()));
    let entries = entries.fold(0, usize::saturating_add);
    wanted(
        metrics.len() == 1 || entries <= BATCH_ENTRIES_MAX,
        "as many metrics as one answer holds",
    )?;
    for active in active.iter() {
        are_rows(active.as_deref(), rows)?;
    }
    for (metric, part) in metrics.iter().zip(parts) {
        fits(settings, metric, rows, settings.selection.is_some())?;
        is_part(settings, *part, folds)?;
    }
    Ok(())
}

/// All rows, or of wide data some of them.
fn are_rows(active: Option<&[usize]>, rows: usize) -> Result<(), Refusal> {
    let fit = match active {
        None => !UnpslSettings::is_wide(rows),
        Some(active) => {
            let rising = active.is_sorted_by(|a, b| a < b);
            let within = active.last().is_none_or(|last| *last < rows);
            UnpslSettings::is_wide(rows) && rising && within && active.len() <= ACTIVE_ROWS_MAX
        }
    };
    wanted(fit, "the metric's rows, some of them where they are many")
}

fn judge_round(
    settings: &UnpslSettings,
    round: &Round,
    rows: usize,
    folds: Option<u32>,
) -> Result<(), Refusal> {
    let Round {
        consensus,
        centre,
        penalty,
        tolerance,
        part,
    } = round;
    fits(settings, consensus, rows, settings.selection.is_some())?;
    // The accelerated consensus ends with a round about each site's own centre; only ADMM goes by others. Where the site
    // holds its dual, it works out every question by itself.
    let usable = match centre {
        Centre::Gradient => settings.is_accelerated(),
        Centre::Told(_) => !settings.is_accelerated(),
        Centre::Dual(_) => false,
    };
    wanted(usable, "a centre only where the job's consensus uses it")?;
    if let Centre::Told(centre) = centre {
        wanted(
            centre.dim() == consensus.dim(),
            "a centre of the consensus's shape",
        )?;
        wanted(centre.iter().all(|x| x.is_finite()), "finite numbers")?;
    }
    wanted(PENALTIES.contains(penalty), "a penalty within its limits")?;
    wanted(
        LOCAL_TOLERANCES.contains(tolerance),
        "a tolerance within its limits",
    )?;
    // A round leaves out a fold of a choice alone.
    is_part(
        settings,
        *part,
        folds.filter(|_| settings.selection.is_some()),
    )
}

fn is_part(settings: &UnpslSettings, part: Part, folds: Option<u32>) -> Result<(), Refusal> {
    let listed = match &settings.selection {
        Some(selection) => selection.form.contains(&part.form),
        None => part.form == settings.objective.form,
    };
    wanted(listed, "the job's form")?;
    match (part.fold, folds) {
        (None, _) => Ok(()),
        (Some(fold), Some(folds)) => wanted(fold < folds, "one of the job's folds"),
        (Some(_), None) => unasked("a job with folds that the site takes part in"),
    }
}

fn correlates(
    settings: &UnpslSettings,
    second_moments: &SecondMoments,
    rows: usize,
) -> Result<(), Refusal> {
    let pooled = settings.objective.correlation == CorrelationScope::Pooled;
    wanted(pooled, "a job with a pooled correlation")?;
    let SecondMoments { products, sums, .. } = second_moments;
    let finite = products.iter().chain(sums).all(|x| x.is_finite());
    let fit = products.dim() == (rows, rows) && sums.len() == rows && finite;
    wanted(fit, "finite second moments of every row")
}

fn judge_validation(
    settings: &UnpslSettings,
    validating: &Validating,
    rows: usize,
) -> Result<(), Refusal> {
    let Validating {
        models,
        folds,
        neighbours,
    } = validating;
    let Some(selection) = &settings.selection else {
        return unasked("a job with a choice");
    };
    wanted(*folds == selection.folds, "the job's folds")?;
    let folds = selection.folds as usize;
    let whole = !models.is_empty() && models.len() % folds == 0;
    wanted(whole, "a model a fold of each candidate")?;
    let entries: usize = models.iter().map(Array2::len).sum();
    wanted(
        models.len() == folds || entries <= BATCH_ENTRIES_MAX,
        "as many candidates as one question holds",
    )?;
    for model in models.iter() {
        fits(settings, model, rows, true)?;
    }
    let same = |models: &[Array2<f64>]| models.windows(2).all(|two| two[0].dim() == two[1].dim());
    wanted(models.chunks(folds).all(same), "models of one rank")?;
    wanted(*neighbours == selection.neighbours, "the job's neighbours")
}

/// Rows of the prepared matrix; `correlated` where the pooled correlation must have come too.
fn ready(settings: &UnpslSettings, correlated: bool, known: Known<'_>) -> Result<usize, Refusal> {
    let Some(rows) = known.rows else {
        return unasked("the preparation first");
    };
    after(PREPARED, known)?;
    if correlated && settings.objective.correlation == CorrelationScope::Pooled {
        after(CORRELATED, known)?;
    }
    Ok(rows)
}

/// A finite matrix of the travelling shape and the job's rank, or of one of the ranks to choose from.
fn fits(
    settings: &UnpslSettings,
    metric: &Array2<f64>,
    rows: usize,
    choice: bool,
) -> Result<(), Refusal> {
    let settings = &settings.clone().of_rows(rows);
    let ranks: &[usize] = match (&settings.selection, choice) {
        (Some(selection), true) => &selection.rank,
        _ => std::slice::from_ref(&settings.objective.rank),
    };
    let fit =
        metric.nrows() == settings.objective.matrix_rows(rows) && ranks.contains(&metric.ncols());
    wanted(fit, "a metric of the job's rows and rank")?;
    wanted(metric.iter().all(|x| x.is_finite()), "finite numbers")
}

fn rising(quartiles: &Quartiles) -> bool {
    let Quartiles {
        lower,
        median,
        upper,
    } = quartiles;
    let finite = [lower, median, upper].iter().all(|x| x.is_finite());
    finite && lower <= upper
}
