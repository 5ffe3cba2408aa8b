//! What a site draws at random for one run and keeps, so that a site that starts again has the same keys again.

use crate::identity::keys::KeyError;
use aws_lc_rs::kem::{DecapsulationKey, EncapsulationKey, ML_KEM_768};
use aws_lc_rs::rand;
use sha2::{Digest, Sha256};
use std::fmt;

/// Bytes of a digest, of a secret, and of the random part.
pub(super) const SECRET_BYTES: usize = 32;
const DECAPSULATION_BYTES: usize = 2_400;
const ENCAPSULATION_BYTES: usize = 1_184;
pub(super) const CIPHERTEXT_BYTES: usize = 1_088;
const DRAWN_BYTES: usize = 2 * SECRET_BYTES + DECAPSULATION_BYTES + ENCAPSULATION_BYTES;
const ENCAPSULATED_BYTES: usize = 2 * SECRET_BYTES + CIPHERTEXT_BYTES;

/// The random part of a site's keys for one run on one cohort, with what was encapsulated so far.
pub struct RunSecrets {
    pub(super) random: [u8; SECRET_BYTES],
    cohort: [u8; SECRET_BYTES],
    pub(super) decapsulation: Vec<u8>,
    pub(super) encapsulation: Vec<u8>,
    encapsulated: Vec<Encapsulated>,
}

/// A secret that was encapsulated for another site's key.
#[derive(Clone)]
pub(super) struct Encapsulated {
    /// SHA-256 of that key.
    key: [u8; SECRET_BYTES],
    pub(super) ciphertext: Vec<u8>,
    pub(super) secret: [u8; SECRET_BYTES],
}

impl RunSecrets {
    /// Fresh secrets for a run on the cohort with this digest.
    ///
    /// # Errors
    /// [`KeyError::Unusable`] where the system has no random numbers.
    pub fn draw(cohort: [u8; SECRET_BYTES]) -> Result<Self, KeyError> {
        let unusable = |_| KeyError::Unusable;
        let mut random = [0; SECRET_BYTES];
        rand::fill(&mut random).map_err(unusable)?;
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(unusable)?;
        let public = key.encapsulation_key().map_err(unusable)?;
        Ok(Self {
            random,
            cohort,
            decapsulation: key.key_bytes().map_err(unusable)?.as_ref().to_vec(),
            encapsulation: public.key_bytes().map_err(unusable)?.as_ref().to_vec(),
            encapsulated: Vec::new(),
        })
    }

    /// The digest of the cohort that they are for.
    #[must_use]
    pub fn cohort(&self) -> &[u8; SECRET_BYTES] {
        &self.cohort
    }

    /// As they are kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let drawn = [
            &self.random[..],
            &self.cohort,
            &self.decapsulation,
            &self.encapsulation,
        ];
        let mut bytes = drawn.concat();
        for encapsulated in &self.encapsulated {
            bytes.extend(
                [
                    &encapsulated.key[..],
                    &encapsulated.secret,
                    &encapsulated.ciphertext,
                ]
                .concat(),
            );
        }
        bytes
    }

    /// Secrets that were kept.
    ///
    /// # Errors
    /// [`KeyError::Unusable`] where the bytes are of another length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let (drawn, encapsulated) = bytes
            .split_at_checked(DRAWN_BYTES)
            .filter(|(_, encapsulated)| encapsulated.len().is_multiple_of(ENCAPSULATED_BYTES))
            .ok_or(KeyError::Unusable)?;
        let (random, rest) = drawn.split_at(SECRET_BYTES);
        let (cohort, rest) = rest.split_at(SECRET_BYTES);
        let (decapsulation, encapsulation) = rest.split_at(DECAPSULATION_BYTES);
        Ok(Self {
            random: array(random)?,
            cohort: array(cohort)?,
            decapsulation: decapsulation.to_vec(),
            encapsulation: encapsulation.to_vec(),
            encapsulated: encapsulated
                .chunks(ENCAPSULATED_BYTES)
                .map(Encapsulated::from_bytes)
                .collect::<Result<_, _>>()?,
        })
    }

    /// What was encapsulated for a key before, if anything was.
    pub(super) fn known(&self, key: &[u8]) -> Option<&Encapsulated> {
        let key = Sha256::digest(key);
        self.encapsulated
            .iter()
            .find(|encapsulated| encapsulated.key[..] == key[..])
    }

    /// The same secret for a key whenever it is asked; a fresh one at first.
    ///
    /// # Errors
    /// [`KeyError::Unusable`] where nothing can be encapsulated for that key.
    pub(super) fn encapsulate(&mut self, key: &[u8]) -> Result<Encapsulated, KeyError> {
        if let Some(encapsulated) = self.known(key) {
            return Ok(encapsulated.clone());
        }
        let encapsulated = Encapsulated::fresh(key)?;
        self.encapsulated.push(encapsulated.clone());
        Ok(encapsulated)
    }
}

impl Encapsulated {
    /// A fresh secret, encapsulated for a key.
    ///
    /// # Errors
    /// [`KeyError::Unusable`] where the key has another length, or numbers that no key of ML-KEM-768 has.
    pub(super) fn fresh(key: &[u8]) -> Result<Self, KeyError> {
        let public = EncapsulationKey::new(&ML_KEM_768, key).map_err(|_| KeyError::Unusable)?;
        let (ciphertext, secret) = public.encapsulate().map_err(|_| KeyError::Unusable)?;
        Ok(Self {
            key: array(&Sha256::digest(key))?,
            ciphertext: ciphertext.as_ref().to_vec(),
            secret: array(secret.as_ref())?,
        })
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let (key, rest) = bytes.split_at(SECRET_BYTES);
        let (secret, ciphertext) = rest.split_at(SECRET_BYTES);
        Ok(Self {
            key: array(key)?,
            ciphertext: ciphertext.to_vec(),
            secret: array(secret)?,
        })
    }
}

pub(super) fn array(bytes: &[u8]) -> Result<[u8; SECRET_BYTES], KeyError> {
    bytes.try_into().map_err(|_| KeyError::Unusable)
}

impl fmt::Debug for RunSecrets {
    /// Nothing of them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RunSecrets").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back_and_what_is_cut_is_not() {
        let other = RunSecrets::draw([1; 32]).unwrap();
        let mut secrets = RunSecrets::draw([7; 32]).unwrap();
        assert_ne!(secrets.random, other.random);
        let first = secrets.encapsulate(&other.encapsulation).unwrap();
        let bytes = secrets.to_bytes();
        let mut again = RunSecrets::from_bytes(&bytes).unwrap();
        assert_eq!(again.to_bytes(), bytes);
        assert_eq!(again.cohort(), &[7; 32]);
        let second = again.encapsulate(&other.encapsulation).unwrap();
        assert_eq!(first.ciphertext, second.ciphertext);
        assert_eq!(again.to_bytes(), bytes);
        for length in [0, 100, DRAWN_BYTES - 1, bytes.len() - 1] {
            assert!(RunSecrets::from_bytes(&bytes[..length]).is_err());
        }
        assert!(Encapsulated::fresh(&[255; ENCAPSULATION_BYTES]).is_err());
        assert!(Encapsulated::fresh(&bytes[..ENCAPSULATION_BYTES - 1]).is_err());
    }
}
