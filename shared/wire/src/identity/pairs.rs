//! What two sites share, by which they cover what they say.
//!
//! They agree twice: by X25519, and by a secret that the earlier of the job encapsulates for the later by ML-KEM-768. What they
//! share follows from both, so that who keeps all that was sent must break both. Under it each tells every later one a secret;
//! what the first has told all is what all of them share.

use crate::identity::keys::{KeyError, SiteKeys};
use aws_lc_rs::agreement::{self, UnparsedPublicKey, X25519};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use libcrux_ml_kem::mlkem768::{
    MlKem768Ciphertext, MlKem768PublicKey, decapsulate, encapsulate, validate_public_key,
};
use privacy::sums::{Masks, PAIR_BYTES};
use protocol::message::{Encapsulations, Introduction};
use protocol::name::SiteName;
use sha2::{Digest, Sha256};

/// What two sites share is taken from their agreements with this.
const PAIR: &[u8] = b"kindred: masks of two sites, version 2";
/// What is encapsulated for another site follows from the site's own secret with this.
const ENCAPSULATED: &[u8] = b"kindred: a secret for another site, version 1";
/// What a site tells all later ones follows from its own secret with this.
const COMMON: &[u8] = b"kindred: a secret for all later sites, version 1";
/// What that is covered with for one of them is taken from what is shared with it, with this.
const COVER: &[u8] = b"kindred: a secret of two sites for one of all, version 1";
/// Bytes of a secret that is shared by ML-KEM, and of what it follows from.
pub(super) const SECRET_BYTES: usize = 32;

/// What the sites of a run have told each other of their keys, a place a site of the job.
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
    /// A secret for every later site that has introduced itself.
    ///
    /// # Errors
    /// [`KeyError::Agreement`].
    pub fn encapsulate(&self, others: &Acquaintance<'_>) -> Result<Encapsulations, KeyError> {
        let sites = others.sites.len();
        let mut told = Encapsulations {
            ciphertexts: vec![Vec::new(); sites],
            common: vec![Vec::new(); sites],
        };
        let common = self.common(others)?;
        for (place, introduction) in others.introduced() {
            if place > others.own {
                let (ciphertext, secret) = self.for_later(others, place, introduction)?;
                let agreed = self.agreed(others, place, introduction, &ciphertext, &secret)?;
                told.ciphertexts[place] = ciphertext.as_slice().to_vec();
                told.common[place] = agreed.covered(&common);
            }
        }
        Ok(told)
    }

    /// What the site shares with each other that has introduced itself and taken part in what followed, and what all of them
    /// share.
    ///
    /// # Errors
    /// [`KeyError::Agreement`].
    pub fn masks(&self, others: &Acquaintance<'_>) -> Result<Masks, KeyError> {
        let mut pairs = vec![None; others.sites.len()];
        let mut first = (others.own, self.common(others)?);
        for (place, introduction) in others.introduced() {
            let later = place > others.own;
            let told = others.encapsulations.get(place).and_then(Option::as_ref);
            let (ciphertext, secret) = match told {
                _ if later => self.for_later(others, place, introduction)?,
                None => continue,
                Some(told) => {
                    let bytes = told.ciphertexts.get(others.own);
                    let ciphertext =
                        MlKem768Ciphertext::try_from(bytes.map_or(&[][..], Vec::as_slice));
                    let ciphertext = ciphertext.map_err(|_| others.disagreement(place))?;
                    let secret = decapsulate(self.encapsulation.private_key(), &ciphertext);
                    (ciphertext, secret)
                }
            };
            let agreed = self.agreed(others, place, introduction, &ciphertext, &secret)?;
            if let Some(told) = told.filter(|_| place < first.0) {
                let bytes = told.common.get(others.own);
                let common = bytes.and_then(|bytes| agreed.uncovered(bytes));
                first = (place, common.ok_or_else(|| others.disagreement(place))?);
            }
            pairs[place] = Some(agreed.pair);
        }
        Ok(Masks::new(others.own, pairs, Some(first.1)))
    }

    /// What the site tells all later ones.
    fn common(&self, others: &Acquaintance<'_>) -> Result<[u8; PAIR_BYTES], KeyError> {
        let common = derived(COMMON, &self.encapsulated, others.run.as_bytes());
        common.map_err(|_| others.disagreement(others.own))
    }

    /// What follows from both agreements with another site.
    fn agreed(
        &self,
        others: &Acquaintance<'_>,
        place: usize,
        introduction: &Introduction,
        ciphertext: &MlKem768Ciphertext,
        secret: &[u8; SECRET_BYTES],
    ) -> Result<Agreed, KeyError> {
        let public = UnparsedPublicKey::new(&X25519, &introduction.agreement);
        let told = Sha256::digest(ciphertext.as_slice());
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

    /// What the site encapsulates for a later one, and the ciphertext: the same whenever it is asked.
    fn for_later(
        &self,
        others: &Acquaintance<'_>,
        place: usize,
        introduction: &Introduction,
    ) -> Result<(MlKem768Ciphertext, [u8; SECRET_BYTES]), KeyError> {
        let disagreement = || others.disagreement(place);
        let key = MlKem768PublicKey::try_from(introduction.encapsulation.as_slice());
        let key = key.map_err(|_| disagreement())?;
        if !validate_public_key(&key) {
            return Err(disagreement());
        }
        let bound = Sha256::digest(key.as_slice());
        let info = [others.run.as_bytes(), &others.names(place), &bound].concat();
        let chance = derived(ENCAPSULATED, &self.encapsulated, &info);
        Ok(encapsulate(&key, chance.map_err(|_| disagreement())?))
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

fn derived(salt: &[u8], secret: &[u8], info: &[u8]) -> Result<[u8; PAIR_BYTES], Unspecified> {
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

    /// What all have told, of one run.
    struct Told {
        introductions: Vec<Option<Introduction>>,
        encapsulations: Vec<Option<Encapsulations>>,
    }

    impl Told {
        fn of(run: &str, sites: &[SiteName], parties: &[Party]) -> Self {
            let introductions = parties.iter().map(|one| Some(one.introduction.clone()));
            let mut told = Self {
                introductions: introductions.collect(),
                encapsulations: Vec::new(),
            };
            let encapsulated = |(own, party): (usize, &Party)| {
                Some(party.keys.encapsulate(&told.to(run, sites, own)).unwrap())
            };
            told.encapsulations = parties.iter().enumerate().map(encapsulated).collect();
            told
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
    fn summed(told: &Told, sites: &[SiteName], parties: &[Party]) -> Words {
        let mut sum = zeros();
        for (own, party) in parties.iter().enumerate() {
            let masks = party.keys.masks(&told.to(RUN, sites, own)).unwrap();
            let mut words = zeros();
            assert!(masks.cover(b"a", &mut words));
            assert_ne!(words, zeros());
            sum.add(&words).unwrap();
        }
        sum
    }

    #[test]
    fn two_sites_share_what_nobody_else_does() {
        let (_folder, _, sites, parties) = federation(&["north", "south", "east"]);
        let told = Told::of(RUN, &sites, &parties);
        assert_eq!(summed(&told, &sites, &parties), zeros());
        // Keys of another run share something else.
        let other = Told::of("other", &sites, &parties);
        let other = parties[0]
            .keys
            .masks(&other.to("other", &sites, 0))
            .unwrap();
        let own = parties[0].keys.masks(&told.to(RUN, &sites, 0)).unwrap();
        let (mut one, mut two) = (zeros(), zeros());
        assert!(other.cover(b"a", &mut one) && own.cover(b"a", &mut two));
        assert_ne!(one, two);
    }

    /// Each of the two agreements has a part in it: with one of them alone nothing fits together.
    #[test]
    fn what_is_shared_follows_from_both_agreements() {
        let (_folder, _, sites, parties) = federation(&["north", "south", "east"]);
        let told = Told::of(RUN, &sites, &parties);
        let again = Told::of(RUN, &sites, &parties);
        assert_eq!(told.encapsulations, again.encapsulations);
        let [north, south, east] = [0, 1, 2].map(|site: usize| {
            let all = &told.encapsulations[site].as_ref().unwrap().ciphertexts;
            all.iter().map(Vec::len).collect::<Vec<_>>()
        });
        assert_eq!(
            [north, south, east],
            [[0, 1_088, 1_088], [0, 0, 1_088], [0, 0, 0]]
        );
        let mut swapped = Told::of(RUN, &sites, &parties);
        let north = swapped.encapsulations[0].as_mut().unwrap();
        north.ciphertexts[1][17] ^= 1;
        assert_ne!(summed(&swapped, &sites, &parties), zeros());
        let mut swapped = Told::of(RUN, &sites, &parties);
        let agreement = parties[2].introduction.agreement.clone();
        swapped.introductions[1].as_mut().unwrap().agreement = agreement;
        assert_ne!(summed(&swapped, &sites, &parties), zeros());
        // Without the secret of one site nothing is covered.
        let mut silent = Told::of(RUN, &sites, &parties);
        silent.encapsulations[0] = None;
        let masks = parties[1].keys.masks(&silent.to(RUN, &sites, 1)).unwrap();
        assert!(!masks.cover(b"a", &mut zeros()));
        let mut damaged = Told::of(RUN, &sites, &parties);
        damaged.introductions[2].as_mut().unwrap().encapsulation = vec![255; 1_184];
        let error = parties[0]
            .keys
            .masks(&damaged.to(RUN, &sites, 0))
            .unwrap_err();
        assert!(matches!(error, KeyError::Agreement { .. }), "{error}");
    }
}
