//! Numeric inputs of operators in a trace: formatted like torch, and parsed into encoded inputs.

use mindprof_model::InputsEncoder;

/// A number, or a missing element of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
    Bool(bool),
    Complex(f64, f64),
    None,
}

impl Number {
    /// Parses a number.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "True" => return Some(Self::Bool(true)),
            "False" => return Some(Self::Bool(false)),
            "None" => return Some(Self::None),
            _ => {}
        }
        let int = text.parse().map(Self::Int);
        let number = int.or_else(|_| text.parse().map(Self::Float));
        number.ok().or_else(|| parse_complex(text))
    }

    /// Adds the number to encoded inputs.
    pub(super) fn encode(self, encoder: &mut InputsEncoder) {
        match self {
            Self::Int(value) => encoder.int(value),
            Self::Float(value) => encoder.float(value),
            Self::Bool(value) => encoder.bool(value),
            Self::Complex(real, imaginary) => encoder.complex(real, imaginary),
            Self::None => encoder.other(),
        }
    }
}

/// Adds a list of numbers, which has one type if all its elements do.
pub(super) fn encode_numbers(encoder: &mut InputsEncoder, numbers: &[Number]) {
    fn all<T>(numbers: &[Number], pick: impl Fn(Number) -> Option<T>) -> Option<Vec<T>> {
        numbers.iter().copied().map(pick).collect()
    }
    let int = |number| match number {
        Number::Int(value) => Some(value),
        _ => None,
    };
    let float = |number| match number {
        Number::Float(value) => Some(value),
        _ => None,
    };
    let truth = |number| match number {
        Number::Bool(value) => Some(value),
        _ => None,
    };
    if let Some(integers) = all(numbers, int) {
        encoder.int_list(&integers);
    } else if let Some(floats) = all(numbers, float) {
        encoder.float_list(&floats);
    } else if let Some(values) = all(numbers, truth) {
        encoder.bool_list(&values);
    } else {
        encoder.number_list(numbers.len());
        for number in numbers {
            number.encode(encoder);
        }
    }
}

/// Parses the output of `complex_text`. The sign between the parts is the last one outside an
/// exponent.
fn parse_complex(text: &str) -> Option<Number> {
    let text = text.strip_suffix('j')?;
    let is_between =
        |&(place, _): &(usize, &str)| place > 0 && !text[..place].ends_with(['e', 'E']);
    let (place, _) = text.rmatch_indices(['+', '-']).find(is_between)?;
    let (real, imaginary) = text.split_at(place);
    Some(Number::Complex(real.parse().ok()?, imaginary.parse().ok()?))
}

/// Formats a complex number as its two parts, the second with its sign.
pub(super) fn complex_text(real: f64, imaginary: f64) -> String {
    let sign = if imaginary >= 0.0 { '+' } else { '-' };
    format!("{}{sign}{}j", float_text(real), float_text(imaginary.abs()))
}

pub(super) fn truth_text(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Formats a float with up to 17 significant digits, and a trailing point if it is integral.
pub(super) fn float_text(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let scientific = format!("{value:.16e}");
    let (mantissa, exponent) = scientific
        .split_once('e')
        .expect("the format has an exponent");
    let exponent: i32 = exponent
        .parse()
        .expect("the format's exponent is a small integer");
    if (-4..17).contains(&exponent) {
        let digits = (16 - exponent).max(0) as usize;
        let fixed = format!("{value:.digits$}");
        if fixed.contains('.') {
            return fixed.trim_end_matches('0').into();
        }
        return fixed + ".";
    }
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complex_numbers_are_written_as_torch_writes_them_and_read_back() {
        for (real, imaginary, text) in [
            (1.0, -2.0, "1.-2.j"),
            (0.0, 1.0, "0.+1.j"),
            (-1.5, 2.0, "-1.5+2.j"),
            (0.0, 0.1, "0.+0.10000000000000001j"),
            (1e300, 1e-300, "1.0000000000000001e+300+1e-300j"),
            (1e16, -1e-5, "10000000000000000.-1.0000000000000001e-05j"),
            (f64::INFINITY, f64::NEG_INFINITY, "inf-infj"),
        ] {
            assert_eq!(complex_text(real, imaginary), text);
            assert_eq!(Number::parse(text), Some(Number::Complex(real, imaginary)));
        }
        assert_eq!(complex_text(f64::NAN, f64::NAN), "nan-nanj");
        assert!(matches!(
            Number::parse("nan-nanj"),
            Some(Number::Complex(real, imaginary)) if real.is_nan() && imaginary.is_nan()
        ));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "j", "+j", "1j", "1+j", "a", "1.+2.", "é+1.j", "e-1.j"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }
}
