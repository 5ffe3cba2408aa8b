//! Numbers as words that add up exactly.

use std::fmt;

/// Bytes of a word as it travels.
pub const WORD_BYTES: usize = 16;
/// Bits of a real number behind the point.
const REAL_BITS: i32 = 64;
/// A real number of one site is below this, either side of 0: so is the sum over 256 sites below 2^62.
const REAL_MAX: f64 = 18_014_398_509_481_984.0; // 2^54
/// Bits of one limb of a measure; what is above them holds the carries of a sum.
const LIMB_BITS: u32 = 96;
/// Limbs of a measure.
const LIMBS: usize = 4;
/// The exponent of a measure's last bit: it holds 2^-192 to 2^192.
const MEASURE_LOWEST: i32 = -192;

/// One number of a message that adds up over sites.
pub enum Number<'n> {
    /// A count, exact. Two share a word.
    Count(&'n mut u64),
    /// A number without a unit, of the size of sums over standardised patients: below 2^54, to 2^-64.
    Real(&'n mut f64),
    /// A sum in a unit of the data, as large or small as that may be: below 2^190, to 2^-192.
    Measure(&'n mut f64),
}

/// What adds up over sites, number by number. Two of the same shape show the same numbers in the same order.
pub trait Summand {
    /// Shows each number, to be read or to be set.
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>));
}

/// How many counts and other numbers add up, in words.
pub fn shape(summand: &mut impl Summand) -> String {
    let (mut counts, mut others) = (0, 0);
    summand.numbers(&mut |number| match number {
        Number::Count(_) => counts += 1,
        Number::Real(_) | Number::Measure(_) => others += 1,
    });
    match (counts, others) {
        (counts, 0) => format!("{counts} counts"),
        (0, others) => format!("{others} numbers"),
        (counts, others) => format!("{counts} counts, {others} numbers"),
    }
}

/// Words of 128 bits, added modulo 2^128.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Words(Vec<u128>);

/// Numbers that make no words, or words that make no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Too large, or none at all.
    #[error(
        "found a number beyond what sums can hold, wanted one below 2^54, or 2^190 in a unit of the data"
    )]
    OutOfRange,
    /// Of something else.
    #[error("found {found} words, wanted {wanted}")]
    Length {
        /// Words that were found.
        found: usize,
        /// Words that were wanted.
        wanted: usize,
    },
}

impl Words {
    /// The words of what adds up.
    ///
    /// # Errors
    /// [`NumberError::OutOfRange`].
    pub fn of(summand: &mut impl Summand) -> Result<Self, NumberError> {
        let mut writer = Writer::default();
        summand.numbers(&mut |number| writer.write(&number));
        writer.finish()
    }

    /// How many words the numbers of `summand` take.
    pub fn wanted(summand: &mut impl Summand) -> usize {
        let (mut words, mut half) = (0, false);
        summand.numbers(&mut |number| {
            let (own, counts) = match number {
                Number::Count(_) => (usize::from(!half), true),
                Number::Real(_) => (1, false),
                Number::Measure(_) => (LIMBS, false),
            };
            words += own;
            half = counts && !half;
        });
        words
    }

    /// Words as they came.
    #[must_use]
    pub fn received(words: Vec<u128>) -> Self {
        Self(words)
    }

    /// The words.
    #[must_use]
    pub fn as_slice(&self) -> &[u128] {
        &self.0
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u128] {
        &mut self.0
    }

    /// Adds the words of another site.
    ///
    /// # Errors
    /// [`NumberError::Length`]; nothing is added then.
    pub fn add(&mut self, other: &Self) -> Result<(), NumberError> {
        let (found, wanted) = (other.0.len(), self.0.len());
        if found != wanted {
            return Err(NumberError::Length { found, wanted });
        }
        let pairs = self.0.iter_mut().zip(&other.0);
        pairs.for_each(|(sum, own)| *sum = sum.wrapping_add(*own));
        Ok(())
    }

    /// Sets the numbers of `summand` to what the words say.
    ///
    /// # Errors
    /// [`NumberError::Length`] where they are of another shape.
    pub fn read_into(&self, summand: &mut impl Summand) -> Result<(), NumberError> {
        let (found, wanted) = (self.0.len(), Self::wanted(summand));
        if found != wanted {
            return Err(NumberError::Length { found, wanted });
        }
        let mut reader = Reader {
            words: self.0.iter(),
            half: None,
        };
        summand.numbers(&mut |number| reader.read(number));
        Ok(())
    }
}

impl fmt::Debug for Words {
    /// How many: not what they are.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} words", self.0.len())
    }
}

#[derive(Default)]
struct Writer {
    words: Vec<u128>,
    /// Whether the last word holds one count and has room for another.
    half: bool,
    is_out_of_range: bool,
}

impl Writer {
    fn write(&mut self, number: &Number<'_>) {
        match number {
            Number::Count(count) => match self.words.last_mut() {
                Some(word) if self.half => {
                    *word |= u128::from(**count) << 64;
                    self.half = false;
                }
                _ => {
                    self.words.push(u128::from(**count));
                    self.half = true;
                }
            },
            Number::Real(real) => {
                self.half = false;
                let fits = real.abs() < REAL_MAX;
                self.is_out_of_range |= !fits;
                self.words.push(fixed(**real).cast_unsigned());
            }
            Number::Measure(measure) => {
                self.half = false;
                match limbs(**measure) {
                    Some(limbs) => self.words.extend(limbs.map(i128::cast_unsigned)),
                    None => self.is_out_of_range = true,
                }
            }
        }
    }

    fn finish(self) -> Result<Words, NumberError> {
        match self.is_out_of_range {
            true => Err(NumberError::OutOfRange),
            false => Ok(Words(self.words)),
        }
    }
}

struct Reader<'w> {
    words: std::slice::Iter<'w, u128>,
    /// The second count of the last word.
    half: Option<u64>,
}

impl Reader<'_> {
    fn read(&mut self, number: Number<'_>) {
        match number {
            Number::Count(count) => {
                *count = self.half.take().unwrap_or_else(|| {
                    let word = self.next();
                    #[allow(clippy::cast_possible_truncation)] // two halves
                    let (low, high) = (word as u64, (word >> 64) as u64);
                    self.half = Some(high);
                    low
                });
            }
            Number::Real(real) => {
                self.half = None;
                #[allow(clippy::cast_precision_loss)] // rounded once
                let fixed = self.next().cast_signed() as f64;
                *real = fixed * 2_f64.powi(-REAL_BITS);
            }
            Number::Measure(measure) => {
                self.half = None;
                *measure = measured(std::array::from_fn(|_| self.next().cast_signed()));
            }
        }
    }

    fn next(&mut self) -> u128 {
        self.words.next().copied().unwrap_or(0)
    }
}

/// A number below 2^54 times 2^64, rounded once: to the nearest, of two to the even one.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)] // each part fits
fn fixed(real: f64) -> i128 {
    const SHIFT: f64 = 4_503_599_627_370_496.0; // 2^52: adding it rounds to a whole number
    let size = real.abs();
    let whole = size as i64;
    // Exact, for it moves the exponent alone.
    let rest = (size - whole as f64) * 2_f64.powi(REAL_BITS);
    let rest = if rest < SHIFT {
        (rest + SHIFT) - SHIFT
    } else {
        rest
    };
    let fixed = (i128::from(whole) << REAL_BITS) + i128::from(rest as u64);
    if real < 0.0 { -fixed } else { fixed }
}

/// A number as limbs of 96 bits, the lowest first, each with the number's sign; none where it is too large. What is below
/// 2^-192 is dropped.
fn limbs(number: f64) -> Option<[i128; LIMBS]> {
    const MANTISSA_BITS: i32 = 52;
    if !number.is_finite() || number.abs() >= 2_f64.powi(190) {
        return None;
    }
    let bits = number.abs().to_bits();
    #[allow(clippy::cast_possible_truncation)] // 11 bits
    let exponent = (bits >> MANTISSA_BITS) as i32;
    let fraction = bits & ((1 << MANTISSA_BITS) - 1);
    let (mantissa, exponent) = match exponent {
        0 => (fraction, -1_074),
        _ => (fraction | 1 << MANTISSA_BITS, exponent - 1_075),
    };
    let mut place = exponent - MEASURE_LOWEST;
    let mut mantissa = u128::from(mantissa);
    if place < 0 {
        mantissa = mantissa.checked_shr(place.unsigned_abs()).unwrap_or(0);
        place = 0;
    }
    let (limb, shift) = (
        place.unsigned_abs() / LIMB_BITS,
        place.unsigned_abs() % LIMB_BITS,
    );
    let mask = (1_u128 << LIMB_BITS) - 1;
    let mut limbs = [0; LIMBS];
    let sign = if number < 0.0 { -1 } else { 1 };
    // 53 bits behind at most 95 others: they end in the next limb at the latest.
    let (low, high) = ((mantissa << shift) & mask, mantissa >> (LIMB_BITS - shift));
    for (place, part) in [(limb as usize, low), (limb as usize + 1, high)] {
        if part != 0 {
            *limbs.get_mut(place)? = sign * part.cast_signed();
        }
    }
    Some(limbs)
}

/// The number of sums of limbs, rounded to the nearest but for the last bit.
#[allow(clippy::cast_precision_loss)] // that is the rounding
fn measured(mut limbs: [i128; LIMBS]) -> f64 {
    carry(&mut limbs);
    let negative = limbs[LIMBS - 1] < 0;
    if negative {
        limbs = limbs.map(|limb| -limb);
        carry(&mut limbs);
    }
    let mut sum = 0.0;
    for (place, limb) in limbs.iter().enumerate().rev() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // four limbs
        let lowest = MEASURE_LOWEST + (place as u32 * LIMB_BITS) as i32;
        sum += *limb as f64 * 2_f64.powi(lowest);
    }
    if negative { -sum } else { sum }
}

/// Leaves 96 bits without a sign in every limb but the highest.
fn carry(limbs: &mut [i128; LIMBS]) {
    let mask = (1_i128 << LIMB_BITS) - 1;
    for place in 0..LIMBS - 1 {
        limbs[place + 1] = limbs[place + 1].wrapping_add(limbs[place] >> LIMB_BITS);
        limbs[place] &= mask;
    }
}
