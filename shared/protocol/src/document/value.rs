//! From a value of a document to a type.

use toml_span::value::Value;

/// A type that a value of the document can become.
pub trait FromValue: Sized {
    /// What the reader wants, in words.
    const WANTED: &'static str;

    /// The value, where it is of this type.
    fn from_value(value: &Value<'_>) -> Option<Self>;
}

/// One value, or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOrMore<T>(pub Vec<T>);

impl FromValue for String {
    const WANTED: &'static str = "a string";
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl FromValue for bool {
    const WANTED: &'static str = "true or false";
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.as_bool()
    }
}

impl FromValue for u64 {
    const WANTED: &'static str = "a whole number of 0 or more";
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value
            .as_integer()
            .and_then(|number| Self::try_from(number).ok())
    }
}

impl FromValue for f64 {
    const WANTED: &'static str = "a number";
    #[allow(clippy::cast_precision_loss)] // whole numbers of a configuration are small
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value
            .as_float()
            .or_else(|| value.as_integer().map(|number| number as f64))
    }
}

impl FromValue for Vec<String> {
    const WANTED: &'static str = "a list of strings";
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.as_array()?.iter().map(String::from_value).collect()
    }
}

impl<T: FromValue> FromValue for OneOrMore<T>
where
    Vec<T>: FromValue,
{
    const WANTED: &'static str = "a number, or a list of numbers";
    fn from_value(value: &Value<'_>) -> Option<Self> {
        let one = || T::from_value(value).map(|one| vec![one]);
        one().or_else(|| Vec::from_value(value)).map(Self)
    }
}

impl FromValue for Vec<u64> {
    const WANTED: &'static str = "a list of whole numbers of 0 or more";
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.as_array()?.iter().map(u64::from_value).collect()
    }
}

impl FromValue for Vec<Vec<f64>> {
    const WANTED: &'static str = "a list of lists of numbers";
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.as_array()?.iter().map(Vec::from_value).collect()
    }
}

impl FromValue for Vec<f64> {
    const WANTED: &'static str = "a list of numbers";
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.as_array()?.iter().map(f64::from_value).collect()
    }
}
