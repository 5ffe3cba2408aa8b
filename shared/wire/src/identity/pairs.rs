//! What two sites share, by which they cover what they say.
//!
//! They agree twice: by X25519, and by a secret that the earlier of the job encapsulates for the later by ML-KEM-768. What they
//! share follows from both, so that who keeps all that was sent must break both. Under it each tells every later one a secret;
//! what the first has sent to all is what all of them share.

use crate::identity::keys::{KeyError, SiteKeys};
use crate::identity::secrets::{SECRET_BYTES, array};
use aws_lc_rs::agreement::{self, UnparsedPublicKey, X25519};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use privacy::sums::{Masks, PAIR_BYTES};
use protocol::message::{Encapsulations, Introduction};
use protocol::name::SiteName;
use sha2::{Digest, Sha256};

/// What two sites share is taken from their agreements with this.
const PAIR: &[u8] = b"kindred: masks of two sites, version 2";
/// What that is covered with for one of them is taken from what is shared with it, with this.
const COVER: &[u8] = b"kindred: a secret of two sites for one of all, version 1";
/// What the sites of a run have sent each other about their keys, one place per site of the job.
#[derive(Debug, Clone, Copy)]
pub struct Acquaintance<'a> {
    /// The digest of the run, 64 digits.
    pub run: &'a str,
    /// The sites.
    pub sites: &'a [SiteName],
    /// The place of the site itself.
    pub own: usize,
    /// Their keys.
    pub introductions: &'a [Option<Introduction>],
    /// What each has encapsulated for the later ones; empty before.
    pub encapsulations: &'a [Option<Encapsulations>],
}

impl SiteKeys {
    /// A secret for every later site that has introduced itself: the same whenever it is asked. Nothing of it may leave before
    /// [`SiteKeys::secrets`] are kept.
    ///
    /// # Errors
    /// [`KeyError::Agreement`].
    pub fn encapsulate(&mut self, others: &Acquaintance<'_>) -> Result<Encapsulations, KeyError> {
        let sites = others.sites.len();
        let mut said = Encapsulations {
            ciphertexts: vec![Vec::new(); sites],
            common: vec![Vec::new(); sites],
        };
        for (place, introduction) in others.introduced() {
            if place > others.own {
                let told = self.secrets.encapsulate(&introduction.encapsulation);
                let told = told.map_err(|_| others.disagreement(place))?;
                let agreed =
                    self.agreed(others, place, introduction, &told.ciphertext, &told.secret)?;
                said.ciphertexts[place] = told.ciphertext;
                said.common[place] = agreed.covered(&self.common);
            }
        }
        Ok(said)
    }

    /// What the site shares with each other that has introduced itself and taken part in what followed, and what all of them
    /// share.
    ///
    /// # Errors
    /// [`KeyError::Agreement`].
    pub fn masks(&self, others: &Acquaintance<'_>) -> Result<Masks, KeyError> {
        let mut pairs = vec![None; others.sites.len()];
        let mut first = (others.own, self.common);
        for (place, introduction) in others.introduced() {
            let earlier = others.encapsulations.get(place).and_then(Option::as_ref);
            let earlier = earlier.filter(|_| place < others.own);
            let (ciphertext, secret) = match (earlier, place > others.own) {
                (_, true) => match self.secrets.known(&introduction.encapsulation) {
                    Some(told) => (told.ciphertext.clone(), told.secret),
                    None => continue,
                },
                (None, false) => continue,
                (Some(told), false) => {
                    let bytes = told.ciphertexts.get(others.own);
                    let ciphertext = bytes.cloned().unwrap_or_default();
                    let secret = self.decapsulation.decapsulate(ciphertext[..].into());
                    let secret = secret.ok().and_then(|secret| array(secret.as_ref()).ok());
                    (
                        ciphertext,
                        secret.ok_or_else(|| others.disagreement(place))?,
                    )
                }
            };
            let agreed = self.agreed(others, place, introduction, &ciphertext, &secret)?;
            if let Some(told) = earlier.filter(|_| place < first.0) {
                let bytes = told.common.get(others.own);
                let common = bytes.and_then(|bytes| agreed.uncovered(bytes));
                first = (place, common.ok_or_else(|| others.disagreement(place))?);
            }
            pairs[place] = Some(agreed.pair);
        }
        Ok(Masks::new(others.own, pairs, Some(first.1)))
    }

    /// What follows from both agreements with another site.
    fn agreed(
        &self,
        others: &Acquaintance<'_>,
        place: usize,
        introduction: &Introduction,
        ciphertext: &[u8],
        secret: &[u8; SECRET_BYTES],
    ) -> Result<Agreed, KeyError> {
        let public = UnparsedPublicKey::new(&X25519, &introduction.agreement);
        let told = Sha256::digest(ciphertext);
        let info = [others.run.as_bytes(), &others.names(place), &told].concat();
        let agreed = agreement::agree(&self.agreement, public, Unspecified, |shared| {
            let both = [shared, &secret[..]].concat();
            Ok(Agreed {
                pair: derived(PAIR, &both, &info)?,
                cover: derived(COVER, &both, &info)?,
            })
        });
        agreed.map_err(|_| others.disagreement(place))
    }
}

/// What two sites share.
struct Agreed {
    /// What masks are made of.
    pair: [u8; PAIR_BYTES],
    /// What the earlier's secret for all is covered with, once.
    cover: [u8; PAIR_BYTES],
}

impl Agreed {
    fn covered(&self, common: &[u8; PAIR_BYTES]) -> Vec<u8> {
        let bytes = common.iter().zip(&self.cover);
        bytes.map(|(byte, cover)| byte ^ cover).collect()
    }

    fn uncovered(&self, bytes: &[u8]) -> Option<[u8; PAIR_BYTES]> {
        let bytes: [u8; PAIR_BYTES] = bytes.try_into().ok()?;
        self.covered(&bytes).try_into().ok()
    }
}

impl Acquaintance<'_> {
    /// The others who have introduced themselves, by their places.
    fn introduced(&self) -> impl Iterator<Item = (usize, &Introduction)> {
        let known = self.introductions.iter().enumerate();
        let known = known.filter_map(|(place, found)| Some((place, found.as_ref()?)));
        known.filter(|(place, _)| *place != self.own && *place < self.sites.len())
    }

    fn disagreement(&self, place: usize) -> KeyError {
        KeyError::Agreement {
            site: self.sites[place].to_string(),
        }
    }

    /// Both names, the earlier of the job first: the same for both.
    fn names(&self, other: usize) -> Vec<u8> {
        let (first, second) = (self.own.min(other), self.own.max(other));
        format!("\0{}\0{}", self.sites[first], self.sites[second]).into_bytes()
    }
}

struct PairLength;

impl KeyType for PairLength {
    fn len(&self) -> usize {
        PAIR_BYTES
    }
}

pub(super) fn derived(
    salt: &[u8],
    secret: &[u8],
    info: &[u8],
) -> Result<[u8; PAIR_BYTES], Unspecified> {
    let mut pair = [0; PAIR_BYTES];
    let secret = Salt::new(HKDF_SHA256, salt).extract(secret);
    secret.expand(&[info], PairLength)?.fill(&mut pair)?;
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::keys::tests::{Party, RUN, federation};
    use privacy::sums::Words;

    /// What all have sent, of one run.
    struct Exchanged {
        introductions: Vec<Option<Introduction>>,
        encapsulations: Vec<Option<Encapsulations>>,
    }

    impl Exchanged {
        fn of(run: &str, sites: &[SiteName], parties: &mut [Party]) -> Self {
            let introductions = parties.iter().map(|one| Some(one.introduction.clone()));
            let mut exchanged = Self {
                introductions: introductions.collect(),
                encapsulations: Vec::new(),
            };
            let encapsulated = |(own, party): (usize, &mut Party)| {
                Some(
                    party
                        .keys
                        .encapsulate(&exchanged.to(run, sites, own))
                        .unwrap(),
                )
            };
            exchanged.encapsulations = parties.iter_mut().enumerate().map(encapsulated).collect();
            exchanged
        }

        fn to<'a>(&'a self, run: &'a str, sites: &'a [SiteName], own: usize) -> Acquaintance<'a> {
            Acquaintance {
                run,
                sites,
                own,
                introductions: &self.introductions,
                encapsulations: &self.encapsulations,
            }
        }
    }

    fn zeros() -> Words {
        Words::received(vec![0; 3])
    }

    /// The sum of what each site covers.
    fn summed(exchanged: &Exchanged, sites: &[SiteName], parties: &[Party]) -> Words {
        let mut sum = zeros();
        for (own, party) in parties.iter().enumerate() {
            let masks = party.keys.masks(&exchanged.to(RUN, sites, own)).unwrap();
            let mut words = zeros();
            assert!(masks.cover(b"a", &mut words));
            assert_ne!(words, zeros());
            sum.add(&words).unwrap();
        }
        sum
    }

    #[test]
    fn two_sites_share_what_nobody_else_does() {
        let (_folder, _, sites, mut parties) = federation(&["north", "south", "east"]);
        let exchanged = Exchanged::of(RUN, &sites, &mut parties);
        assert_eq!(summed(&exchanged, &sites, &parties), zeros());
        // Keys of another run share something else.
        let other = Exchanged::of("other", &sites, &mut parties);
        let other = parties[0]
            .keys
            .masks(&other.to("other", &sites, 0))
            .unwrap();
        let own = parties[0]
            .keys
            .masks(&exchanged.to(RUN, &sites, 0))
            .unwrap();
        let (mut one, mut two) = (zeros(), zeros());
        assert!(other.cover(b"a", &mut one) && own.cover(b"a", &mut two));
        assert_ne!(one, two);
    }

    /// Each of the two agreements has a part in it: with one of them alone nothing fits together.
    #[test]
    fn what_is_shared_follows_from_both_agreements() {
        let (_folder, _, sites, mut parties) = federation(&["north", "south", "east"]);
        let exchanged = Exchanged::of(RUN, &sites, &mut parties);
        let again = Exchanged::of(RUN, &sites, &mut parties);
        assert_eq!(exchanged.encapsulations, again.encapsulations);
        let [north, south, east] = [0, 1, 2].map(|site: usize| {
            let all = &exchanged.encapsulations[site].as_ref().unwrap().ciphertexts;
            all.iter().map(Vec::len).collect::<Vec<_>>()
        });
        assert_eq!(
            [north, south, east],
            [[0, 1_088, 1_088], [0, 0, 1_088], [0, 0, 0]]
        );
        let mut swapped = Exchanged::of(RUN, &sites, &mut parties);
        let north = swapped.encapsulations[0].as_mut().unwrap();
        north.ciphertexts[1][17] ^= 1;
        assert_ne!(summed(&swapped, &sites, &parties), zeros());
        let mut swapped = Exchanged::of(RUN, &sites, &mut parties);
        let agreement = parties[2].introduction.agreement.clone();
        swapped.introductions[1].as_mut().unwrap().agreement = agreement;
        assert_ne!(summed(&swapped, &sites, &parties), zeros());
        // Without the secret of one site nothing is covered.
        let mut silent = Exchanged::of(RUN, &sites, &mut parties);
        silent.encapsulations[0] = None;
        let masks = parties[1].keys.masks(&silent.to(RUN, &sites, 1)).unwrap();
        assert!(!masks.cover(b"a", &mut zeros()));
        let mut damaged = Exchanged::of(RUN, &sites, &mut parties);
        damaged.introductions[2].as_mut().unwrap().encapsulation = vec![255; 1_184];
        let damaged = damaged.to(RUN, &sites, 0);
        let error = parties[0].keys.encapsulate(&damaged).unwrap_err();
        assert!(matches!(error, KeyError::Agreement { .. }), "{error}");
    }
}
