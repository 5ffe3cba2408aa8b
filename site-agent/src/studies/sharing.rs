//! Whether a study may stand beside those that this site has approved over some of the same patients.

use super::consent::Given;
use super::span::{Exposed, Roster, TooMany, exposed};
use super::{Approved, StudyError};
use crate::config::ColumnMapping;
use privacy::Fingerprint;
use protocol::cohort::{FeatureKind, OutcomeSpecification};
use protocol::name::SiteName;
use protocol::study::Study;
use std::collections::BTreeMap;

/// A study before it is approved, and what it stands beside.
pub(super) struct Sharing<'s> {
    pub(super) study: &'s Study,
    pub(super) patients: &'s Fingerprint,
    /// Studies of which sums have left, or may yet.
    pub(super) known: Vec<&'s Approved>,
    /// Fewer hospitals than these are not to be left of any sums.
    pub(super) least: usize,
    pub(super) consents: &'s [Given],
    /// Which of the site's columns a study's name stands for.
    pub(super) columns: &'s BTreeMap<String, ColumnMapping>,
}

impl Sharing<'_> {
    /// Judges it: no sums of studies tell few patients, or few hospitals.
    pub(super) fn judge(&self) -> Result<(), StudyError> {
        self.renewals()?;
        let sharing = self.connected();
        let studies = || std::iter::once(self.study).chain(sharing.iter().map(|one| &one.study));
        studies().try_for_each(|one| self.ranges(one))?;
        studies().try_for_each(|one| self.horizons(one))?;
        studies().try_for_each(|one| self.parts(one))?;
        let rosters: Vec<Roster> = sharing.iter().map(|one| roster(&one.study)).collect();
        let hospitals = self.consents.iter().map(|given| given.hospital(studies()));
        let consenting = hospitals.collect::<Result<Vec<SiteName>, _>>()?;
        let mut known = Roster::new();
        loop {
            let found = exposed(&roster(self.study), &rosters, self.least, &known);
            let found = found.map_err(|TooMany| too_many(sharing.len()))?;
            let before = known.len();
            let of_found = found.iter().flat_map(|one| &one.hospitals);
            known.extend(of_found.filter(|name| consenting.contains(name)).cloned());
            if known.len() > before {
                continue;
            }
            let mut given = self.consents.iter().zip(&consenting);
            if let Some((needless, _)) = given.find(|(_, name)| !known.contains(name)) {
                return Err(needless.is_needless());
            }
            return match found.first() {
                None => Ok(()),
                Some(first) => Err(self.refused(first, &sharing)),
            };
        }
    }

    /// Whoever shares patients with a study of the same hospitals says so, and every study that it names is one of them.
    fn renewals(&self) -> Result<(), StudyError> {
        let own = self.study.roster();
        for name in &self.study.renews {
            let found = self.known.iter().find(|one| one.study.name == *name);
            let found = found.ok_or_else(|| StudyError::Refused {
                what: "renews",
                found: format!("{:?}", name.as_str()),
                wanted: "studies that this site has approved, and that have opened or still may"
                    .to_owned(),
            })?;
            let earlier = found.study.roster();
            if earlier != own {
                return Err(StudyError::Refused {
                    what: "hospitals",
                    found: named(&own),
                    wanted: format!(
                        "{}, in the order of the study {:?}, which this one renews",
                        named(&earlier),
                        name.as_str()
                    ),
                });
            }
        }
        let is_unnamed = |one: &&&Approved| {
            roster(&one.study) == roster(self.study)
                && shares(&one.patients, self.patients)
                && !self.study.renews.contains(&one.study.name)
        };
        let unnamed: Vec<&str> = (self.known.iter().filter(is_unnamed))
            .map(|one| one.study.name.as_str())
            .collect();
        if unnamed.is_empty() {
            return Ok(());
        }
        let renews: Vec<&str> = self.study.renews.iter().map(|name| name.as_str()).collect();
        Err(StudyError::Refused {
            what: "renews",
            found: format!(
                "{renews:?}, and patients of {} too, of the same hospitals",
                unnamed.join(", ")
            ),
            wanted: format!("renews = {:?}", [&renews[..], &unnamed[..]].concat()),
        })
    }

    /// A column of numbers has one range in all studies of its patients, and under all names that a study has for it: sums count whoever
    /// lies beyond an end as the end, so that those of two ends differ by the few patients beyond.
    fn ranges(&self, other: &Study) -> Result<(), StudyError> {
        for feature in &self.study.features {
            for known in &other.features {
                let ends = [feature, known].map(|one| ends(&one.kind));
                if let [Some(own), Some(known_ends)] = ends
                    && self.column(&feature.name) == self.column(&known.name)
                    && own != known_ends
                {
                    let found = format!("{own} of {:?}", feature.name);
                    return Err(refused("range", found, (&known_ends, &known.name), other));
                }
            }
        }
        Ok(())
    }

    /// So has a time one horizon, as under one name in one study.
    fn horizons(&self, other: &Study) -> Result<(), StudyError> {
        for own in &self.study.outcomes {
            for known in &other.outcomes {
                let [outcome, other_one] = [own, known].map(|one| {
                    let column = self.column(&one.specification.column).to_owned();
                    OutcomeSpecification {
                        column,
                        ..one.specification.clone()
                    }
                });
                if let Some((horizon, known_horizon)) = outcome.apart(&other_one) {
                    let found = format!("{horizon} of {:?}", own.name);
                    let wanted = (known_horizon.as_str(), known.name.as_str());
                    return Err(refused("horizon", found, wanted, other));
                }
            }
        }
        Ok(())
    }

    /// So do folds and drawn pairs have one number: another would part the same patients anew.
    fn parts(&self, other: &Study) -> Result<(), StudyError> {
        let refused = |found: String, wanted: String| {
            let study = other.name.as_str();
            Err(StudyError::Refused {
                what: "parts",
                found,
                wanted: format!("{wanted}, as in the study {study:?} of some of the same patients"),
            })
        };
        let (own, known) = (self.study.folds, other.folds);
        if own != known {
            return refused(format!("folds = {own}"), format!("folds = {known}"));
        }
        match (self.study.partners, other.partners) {
            (Some(own), Some(known)) if own != known => refused(
                format!("pairs = {own}"),
                format!("pairs = \"all\" or {known}"),
            ),
            (_, _) => Ok(()),
        }
    }

    /// The site's column that a study names.
    fn column<'n>(&'n self, name: &'n str) -> &'n str {
        let mapping = self.columns.get(name);
        let column = mapping.and_then(|mapping| mapping.column.as_deref());
        column.unwrap_or(name)
    }

    /// Studies that share patients with it, or with one that does.
    fn connected(&self) -> Vec<&Approved> {
        let mut found: Vec<&Approved> = Vec::new();
        let mut left = self.known.clone();
        loop {
            let is_near = |one: &&Approved| {
                let mut patients = found.iter().map(|known| &known.patients);
                shares(&one.patients, self.patients)
                    || patients.any(|known| shares(&one.patients, known))
            };
            let (near, far): (Vec<_>, Vec<_>) = left.into_iter().partition(is_near);
            if near.is_empty() {
                return found;
            }
            found.extend(near);
            left = far;
        }
    }

    fn refused(&self, one: &Exposed, sharing: &[&Approved]) -> StudyError {
        let hospitals: Vec<SiteName> = one.hospitals.iter().cloned().collect();
        let by = one.by.iter().map(|place| &sharing[*place].study.name);
        let by: Vec<String> = by.map(|name| format!("{:?}", name.as_str())).collect();
        StudyError::Refused {
            what: "hospitals",
            found: format!(
                "sums of this study and of {}, over some of the same patients, that tell the sums of {} alone",
                by.join(", "),
                named(&hospitals)
            ),
            wanted: format!(
                "sums over {} hospitals or more, or the consent of {} (study consent, study approve --consent)",
                self.least,
                named(&hospitals)
            ),
        }
    }
}

/// Two studies, or two names in one, that have one column otherwise.
fn refused(
    what: &'static str,
    found: String,
    (wanted, name): (&str, &str),
    study: &Study,
) -> StudyError {
    let study = study.name.as_str();
    StudyError::Refused {
        what,
        found,
        wanted: format!("{wanted}, as of {name:?} in the study {study:?}, from the same column"),
    }
}

fn roster(study: &Study) -> Roster {
    study.roster().into_iter().collect()
}

/// What numbers are clipped to, in their unit; none of what has levels.
fn ends(kind: &FeatureKind) -> Option<String> {
    match kind {
        FeatureKind::Numeric { unit, range, .. } => Some(match range {
            Some((low, high)) => format!("[{low}, {high}] {unit}").trim_end().to_owned(),
            None => format!("no range {unit}").trim_end().to_owned(),
        }),
        FeatureKind::Categorical { .. }
        | FeatureKind::Ordinal { .. }
        | FeatureKind::Binary { .. }
        | FeatureKind::Age { .. } => None,
    }
}

fn shares(one: &Fingerprint, other: &Fingerprint) -> bool {
    one.difference(other) < one.patients() + other.patients()
}

fn named(sites: &[SiteName]) -> String {
    let names: Vec<&str> = sites.iter().map(SiteName::as_str).collect();
    names.join(", ")
}

fn too_many(studies: usize) -> StudyError {
    StudyError::Refused {
        what: "hospitals",
        found: format!("{studies} studies over some of the same patients"),
        wanted: "so few that their rosters can be judged together".to_owned(),
    }
}
