//! YCSB's constant-occupancy workload: the core workload with its counts derived from the size of a disk, so that
//! stores can be compared at the same fill and the same number of times every object is overwritten.

use super::config::{CoreConfig, FieldLengths};
use super::properties::{BadProperty, Lookup, MAX_COUNT, PropertyReader};

/// The properties this workload replaces.
const REPLACED: [&str; 3] = ["recordcount", "insertcount", "operationcount"];

/// The sized workload: a config of the core workload and what was overruled.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantOccupancy {
    /// The core workload to load and run.
    pub config: CoreConfig,
    /// Properties that were set but do not count, for a warning.
    pub ignored: Vec<&'static str>,
}

impl ConstantOccupancy {
    /// Reads the properties. `histogram` is asked for the text of a field-length histogram by its path, where one is
    /// configured; `None` from it means that it cannot be read.
    ///
    /// Objects = floor(occupancy * disksize / (mean field length * fieldcount)); they become `recordcount` and
    /// `insertcount`, and `storageages` times as many `operationcount`.
    pub fn from_lookup(
        lookup: Lookup<'_>,
        histogram: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<ConstantOccupancy, BadProperty> {
        let ignored = REPLACED.into_iter().filter(|&key| lookup(key).is_some()).collect();
        // Everything but the counts first: they follow from it.
        let mut shape = with_counts(lookup, MAX_COUNT, MAX_COUNT)?;
        if let Some(file) = shape.needs_histogram().map(str::to_owned) {
            let text = histogram(&file)
                .ok_or_else(|| BadProperty::new("fieldlengthhistogram", &file, "a file that can be read"))?;
            shape.set_histogram(&text)?;
        }
        let mut r = PropertyReader::new(&mut *lookup);
        let disk = r.count("disksize", 100_000_000, 1..=MAX_COUNT)?;
        let ages = r.count("storageages", 10, 0..=1_000_000_000)?;
        let occupancy =
            r.read_number("occupancy", 0.9, |x| x > 0.0 && x <= 1.0, "a fraction above 0, at most 1")?;
        let record_bytes = mean_field_bytes(&shape)? * f64::from(shape.field_count);
        if record_bytes <= 0.0 {
            return Err(BadProperty::new("fieldlength", shape.field_bytes, "a mean length above 0 bytes"));
        }
        let objects = (occupancy * disk as f64 / record_bytes) as u64;
        if objects == 0 {
            let expected = format!("room for at least one record of {record_bytes} bytes");
            return Err(BadProperty::new("disksize", disk, expected));
        }
        let mut config = with_counts(lookup, objects, objects.saturating_mul(ages).min(MAX_COUNT))?;
        config.lengths = shape.lengths;
        Ok(ConstantOccupancy { config, ignored })
    }
}

/// The core config with the counts given instead of those set.
fn with_counts(lookup: Lookup<'_>, records: u64, operations: u64) -> Result<CoreConfig, BadProperty> {
    CoreConfig::from_lookup(&mut |key| match key {
        "recordcount" => Some(records.to_string()),
        // The shape is read without a range that insertstart could exceed.
        "insertcount" if records == MAX_COUNT => None,
        "insertcount" => Some(records.to_string()),
        "operationcount" => Some(operations.to_string()),
        _ => lookup(key),
    })
}

/// The mean field length in bytes as YCSB reckons it.
fn mean_field_bytes(config: &CoreConfig) -> Result<f64, BadProperty> {
    match &config.lengths {
        FieldLengths::Constant => Ok(config.field_bytes as f64),
        FieldLengths::Uniform => Ok((config.min_field_bytes + config.field_bytes) as f64 / 2.0),
        FieldLengths::Histogram { histogram: Some(histogram), .. } => Ok(histogram.ycsb_mean()),
        FieldLengths::Histogram { file, histogram: None } => {
            Err(BadProperty::new("fieldlengthhistogram", file, "a file that has been read"))
        }
        FieldLengths::Zipfian => Err(BadProperty::new(
            "fieldlengthdistribution",
            "zipfian",
            "constant, uniform or histogram: the record size must have a known mean",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(properties: &[(&str, &str)]) -> Result<ConstantOccupancy, BadProperty> {
        ConstantOccupancy::from_lookup(
            &mut |key| properties.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned()),
            &mut |_| Some("BlockSize\t100\n0\t1\n1\t0\n2\t1\n".to_owned()),
        )
    }

    #[test]
    fn defaults() {
        let sized = read(&[]).unwrap();
        // 0.9 * 10^8 / (100 * 10) bytes.
        assert_eq!((sized.config.record_count, sized.config.insert_count), (90_000, 90_000));
        assert_eq!(sized.config.operation_count, 900_000);
        assert_eq!(sized.ignored, Vec::<&str>::new());
    }

    #[test]
    fn counts_are_overruled_and_named() {
        let sized = read(&[
            ("recordcount", "5"),
            ("operationcount", "7"),
            ("fieldlengthdistribution", "uniform"),
            ("minfieldlength", "0"),
            ("storageages", "2"),
            ("requestdistribution", "hotspot"),
        ])
        .unwrap();
        assert_eq!((sized.config.record_count, sized.config.operation_count), (180_000, 360_000));
        assert_eq!(sized.ignored, ["recordcount", "operationcount"]);
        let sized = read(&[("fieldlengthdistribution", "histogram")]).unwrap();
        // YCSB's mean: 100 * (0 * 1 + 2 * 1) / 2.
        assert_eq!(sized.config.record_count, 90_000);
        assert_eq!(sized.config.needs_histogram(), None);
    }

    #[test]
    fn faults() {
        let key = |properties: &[(&str, &str)]| read(properties).unwrap_err().key;
        assert_eq!(key(&[("disksize", "100")]), "disksize");
        assert_eq!(key(&[("fieldlength", "0")]), "fieldlength");
        assert_eq!(key(&[("occupancy", "1.5")]), "occupancy");
        assert_eq!(key(&[("fieldlengthdistribution", "zipfian")]), "fieldlengthdistribution");
        assert_eq!(key(&[("insertstart", "5")]), "insertcount");
    }
}
