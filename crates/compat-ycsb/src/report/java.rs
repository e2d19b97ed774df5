//! Numbers and hash orders as a Java program prints them.
//!
//! YCSB's reports show doubles through `Double.toString`, its status lines through `DecimalFormat("#.##")` and
//! `String.format("%.2f")`, and its metrics in the order of a `ConcurrentHashMap`. All four are reproduced here, and
//! nothing else of Java. `Double.toString` is that of JDK 19 and later, which is always the shortest text (of two that
//! are equally near, which only occurs from 2^50 on, Rust's is taken).

/// `Double.toString`: shortest digits that read back to the same number, always with a fraction, scientific outside
/// `[1e-3, 1e7)`.
pub fn double(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if x == 0.0 || (1e-3..1e7).contains(&x.abs()) {
        return format!("{x:?}");
    }
    // Java never prints fewer than two digits, and of the texts with two it takes the nearest.
    let two = format!("{x:.1e}");
    let text = if two.parse() == Ok(x) { two } else { format!("{x:e}") };
    match text.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => format!("{mantissa}E{exponent}"),
        Some((mantissa, exponent)) => format!("{mantissa}.0E{exponent}"),
        None => text,
    }
}

/// `DecimalFormat("#.##")` of an English locale: at most two decimals, half to even, no grouping.
pub fn decimal(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    let plain = x.to_string();
    let text = if decimals(&plain) <= 2 { plain } else { format!("{x:.2}") };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `String.format("%.2f")`: two decimals, half up on the digits of the shortest text.
pub fn fixed(x: f64) -> String {
    if !x.is_finite() {
        return double(x);
    }
    let plain = x.abs().to_string();
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let (whole, hundredths) = if fraction.len() <= 2 {
        (whole.to_owned(), format!("{fraction:0<2}"))
    } else {
        // A double with more than two decimals is below 2^53, so its hundredths fit.
        let floor: u64 = format!("{whole}{}", &fraction[..2]).parse().unwrap_or(0);
        let rounded = floor + u64::from(fraction.as_bytes()[2] >= b'5');
        ((rounded / 100).to_string(), format!("{:02}", rounded % 100))
    };
    let sign = if x.is_sign_negative() { "-" } else { "" };
    format!("{sign}{whole}.{hundredths}")
}

fn decimals(plain: &str) -> usize {
    plain.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// `String.hashCode` of ASCII text.
fn hash_code(text: &str) -> u32 {
    text.bytes().fold(0u32, |h, byte| h.wrapping_mul(31).wrapping_add(u32::from(byte)))
}

/// The same, spread as `HashMap` and `ConcurrentHashMap` do.
fn spread_hash(text: &str) -> u32 {
    let hash = hash_code(text);
    hash ^ (hash >> 16)
}

/// The order in which `Properties.propertyNames` lists keys that were put one after the other, as indexes of `keys`: that of a
/// `Hashtable` that was filled in the order of a `ConcurrentHashMap`.
pub fn property_names_order(keys: &[&str]) -> Vec<usize> {
    // The newest of a bin comes first.
    let mut bins: Vec<Vec<usize>> = vec![Vec::new(); 11];
    for (count, index) in concurrent_map_order(keys).into_iter().enumerate() {
        let bin = |index: usize, bins: usize| (hash_code(keys[index]) & 0x7fff_ffff) as usize % bins;
        if count >= bins.len() * 3 / 4 {
            let mut wider = vec![Vec::new(); bins.len() * 2 + 1];
            for old in bins.iter().rev().flatten() {
                let place = bin(*old, wider.len());
                wider[place].insert(0, *old);
            }
            bins = wider;
        }
        let place = bin(index, bins.len());
        bins[place].insert(0, index);
    }
    bins.into_iter().rev().flatten().collect()
}

/// The order in which a `ConcurrentHashMap` of 16 initial bins lists keys that were put one after the other, as
/// indexes of `keys`.
pub fn concurrent_map_order(keys: &[&str]) -> Vec<usize> {
    let mut bins: Vec<Vec<usize>> = vec![Vec::new(); 16];
    for (index, key) in keys.iter().enumerate() {
        let bin = spread_hash(key) as usize % bins.len();
        bins[bin].push(index);
        if (index + 1) * 4 >= bins.len() * 3 {
            bins = doubled(&bins, keys);
        }
    }
    bins.concat()
}

/// A resize: each bin is split in two; the longest tail of one bin that stays together keeps its order, what was
/// before it comes in front of it, in reverse.
fn doubled(bins: &[Vec<usize>], keys: &[&str]) -> Vec<Vec<usize>> {
    let size = bins.len();
    let mut wider = vec![Vec::new(); size * 2];
    for bin in bins {
        let place = |index: usize| spread_hash(keys[index]) as usize % (size * 2);
        let Some(&last) = bin.last() else { continue };
        let tail = bin.iter().rposition(|&index| place(index) != place(last)).map_or(0, |at| at + 1);
        wider[place(last)].extend_from_slice(&bin[tail..]);
        for &index in &bin[..tail] {
            wider[place(index)].insert(0, index);
        }
    }
    wider
}

/// The text of a `HashSet` built from a list, as `toString` gives it.
pub fn set_text(items: &[String]) -> String {
    let mut unique: Vec<&String> = Vec::new();
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    let bins = (items.len() * 4 / 3 + 1).max(16).next_power_of_two();
    unique.sort_by_key(|item| spread_hash(item) as usize % bins);
    let words: Vec<&str> = unique.into_iter().map(String::as_str).collect();
    format!("[{}]", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn doubles_as_java_prints_them() {
        let vectors = [
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (0.001, "0.001"),
            (9.99e-4, "9.99E-4"),
            (1e7, "1.0E7"),
            (9999999.999, "9999999.999"),
            (13918207.0, "1.3918207E7"),
            (-2.5e-5, "-2.5E-5"),
            (1e21, "1.0E21"),
            (1e23, "1.0E23"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::from_bits(2), "9.9E-324"),
            (804.5052292839904, "804.5052292839904"),
        ];
        for (x, text) in vectors {
            assert_eq!(double(x), text);
        }
    }

    /// Computed with JDK 17.
    #[test]
    fn two_decimals_as_java_prints_them() {
        let vectors = [
            (0.5, "0.5", "0.50"),
            (f64::NAN, "NaN", "NaN"),
            (f64::INFINITY, "∞", "Infinity"),
            (f64::NEG_INFINITY, "-∞", "-Infinity"),
            (0.125, "0.12", "0.13"),
            (0.375, "0.38", "0.38"),
            (-0.001, "-0", "-0.00"),
            (0.285, "0.28", "0.29"),
            (1.005, "1", "1.01"),
            (0.005, "0.01", "0.01"),
            (0.015, "0.01", "0.02"),
            (0.995, "0.99", "1.00"),
            (400.0, "400", "400.00"),
            (1196.5, "1196.5", "1196.50"),
            (-0.0, "-0", "-0.00"),
            (0.0, "0", "0.00"),
            (12345678.999, "12345679", "12345679.00"),
            (37634.745, "37634.75", "37634.75"),
            (2.675, "2.67", "2.68"),
            (1e-320, "0", "0.00"),
            (123456789012.345, "123456789012.35", "123456789012.35"),
            (99.995, "100", "100.00"),
            (1234567.125, "1234567.12", "1234567.13"),
        ];
        for (x, short, long) in vectors {
            assert_eq!((decimal(x).as_str(), fixed(x).as_str()), (short, long));
        }
    }

    /// The block of YCSB's BasicDB for `run basic -P workloads/workloada -p recordcount=3 -p operationcount=3`, on JDK 17.
    #[test]
    fn properties_are_listed_as_java_lists_them() {
        let keys = "recordcount operationcount workload readallfields readproportion updateproportion scanproportion \
                    insertproportion requestdistribution dotransactions db";
        let keys: Vec<&str> = keys.split_whitespace().collect();
        let names: Vec<&str> = property_names_order(&keys).into_iter().map(|at| keys[at]).collect();
        let expected = "insertproportion readproportion scanproportion readallfields dotransactions requestdistribution \
                        workload recordcount updateproportion db operationcount";
        assert_eq!(names.join(" "), expected);
    }

    /// Computed with JDK 17; the twelfth key doubles the bins.
    #[test]
    fn map_orders_are_those_of_java() {
        let keys = "READ UPDATE-FAILED SCAN-FAILED DELETE READ-MODIFY-WRITE CLEANUP SCAN-LATENCY-PER-RECORD UPDATE \
                    INSERT VERIFY READ-FAILED SCAN INSERT-FAILED DELETE-FAILED";
        let keys: Vec<&str> = keys.split_whitespace().collect();
        let order = |n: usize| {
            let names: Vec<&str> = concurrent_map_order(&keys[..n]).into_iter().map(|i| keys[i]).collect();
            names.join(" ")
        };
        assert_eq!(order(11), keys[..11].join(" "));
        let twelve = "READ-MODIFY-WRITE SCAN-LATENCY-PER-RECORD VERIFY READ-FAILED READ UPDATE-FAILED SCAN-FAILED DELETE \
                      CLEANUP INSERT UPDATE SCAN";
        assert_eq!(order(12), twelve);
        let fourteen = "READ-MODIFY-WRITE SCAN-LATENCY-PER-RECORD VERIFY READ-FAILED INSERT-FAILED READ UPDATE-FAILED \
                        SCAN-FAILED DELETE CLEANUP DELETE-FAILED INSERT UPDATE SCAN";
        assert_eq!(order(14), fourteen);
        let set =
            "ERROR,NOT_FOUND,UNEXPECTED_STATE,BAD_REQUEST,FORBIDDEN,SERVICE_UNAVAILABLE,NOT_IMPLEMENTED";
        let set: Vec<String> = set.split(',').map(str::to_owned).collect();
        let text = "[NOT_IMPLEMENTED, BAD_REQUEST, NOT_FOUND, ERROR, SERVICE_UNAVAILABLE, UNEXPECTED_STATE, FORBIDDEN]";
        assert_eq!(set_text(&set), text);
        assert_eq!(set_text(&[]), "[]");
    }

    proptest! {
        #[test]
        fn doubles_read_back(bits: u64) {
            let x = f64::from_bits(bits);
            prop_assume!(x.is_finite());
            prop_assert_eq!(double(x).parse::<f64>().unwrap().to_bits(), bits);
        }

        #[test]
        fn two_decimals_are_near(x in -1e9f64..1e9) {
            for text in [decimal(x), fixed(x)] {
                prop_assert!((text.parse::<f64>().unwrap() - x).abs() <= 0.005 + x.abs() * 1e-15);
            }
        }
    }
}
