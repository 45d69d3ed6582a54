//! What a text without quotes is in YAML 1.2: `yes`, `no` and `1_000` are texts.

use super::yaml::Yaml;

/// The value by the core schema: YAML 1.2.2, section 10.3.2. A whole number beyond 64 bits becomes a float.
pub(super) fn plain(text: &str) -> Yaml {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Yaml::Null,
        "true" | "True" | "TRUE" => return Yaml::Bool(true),
        "false" | "False" | "FALSE" => return Yaml::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Yaml::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Yaml::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Yaml::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let radix =
        [("0x", 16), ("0o", 8)].into_iter().find_map(|(prefix, radix)| Some((text.strip_prefix(prefix)?, radix)));
    let whole = match radix {
        // The standard library would take a sign here.
        Some((digits, _)) if !digits.starts_with(|digit: char| digit.is_ascii_hexdigit()) => None,
        Some((digits, radix)) => i64::from_str_radix(digits, radix).ok(),
        None => text.parse().ok(),
    };
    if let Some(whole) = whole {
        return Yaml::Int(whole);
    }
    // The standard library would take `inf` and `nan` as well, which are texts.
    let numeric = text.chars().all(|letter| letter.is_ascii_digit() || "+-.eE".contains(letter));
    match text.parse::<f64>() {
        Ok(value) if numeric => Yaml::Float(value),
        _ => Yaml::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;

    #[test]
    fn plain_values_follow_the_core_schema() {
        let read =
            parse("[yes, 'true', true, ~, 010, 0x1F, 0o17, -7, 1e3, 1_000, nan, 0x-1, !!str 5, 99999999999999999999]")
                .unwrap()
                .unwrap()
                .json();
        let expected =
            serde_json::json!(["yes", "true", true, null, 10, 31, 15, -7, 1000.0, "1_000", "nan", "0x-1", "5", 1e20]);
        assert_eq!(read, expected);
    }
}
