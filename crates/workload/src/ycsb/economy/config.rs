//! The closed economy's properties.

use super::super::config::CoreConfig;
use super::super::properties::{BadProperty, Lookup, MAX_COUNT, PropertyReader};

/// The closed economy as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct EconomyConfig {
    /// Keys, proportions, distributions: the core workload's.
    pub core: CoreConfig,
    /// Money in all accounts together.
    pub total_cash: u64,
    /// Money in an account when it is loaded.
    pub initial: u64,
    /// Warnings that are worth saying.
    pub warnings: Vec<String>,
}

impl EconomyConfig {
    /// Reads the properties, in both of the spellings that ports of YCSB+T use.
    pub fn from_lookup(lookup: Lookup<'_>) -> Result<EconomyConfig, BadProperty> {
        let mut warnings = Vec::new();
        if lookup("fieldcount").is_some_and(|n| n.trim() != "1") {
            warnings.push("fieldcount has no effect: an account has one field".to_owned());
        }
        let mut core = CoreConfig::from_lookup(&mut |key| match key {
            "fieldcount" => Some("1".to_owned()),
            "dataintegrity" => None,
            key => lookup(key),
        })?;
        let mut r = PropertyReader::new(lookup);
        let key = if r.raw_text("totalCash").is_some() { "totalCash" } else { "totalcash" };
        let total = r.count(key, 1_000_000, 1..=MAX_COUNT)?;
        // Accounts are always read one by one: that is exact whatever a query would say.
        let key = if r.raw_text("validateByQuery").is_some() { "validateByQuery" } else { "validatebyquery" };
        r.read_flag(key, true)?;
        if core.proportions.delete > 0.0 {
            let expected = "0: a closed economy has no deletes";
            return Err(BadProperty::new("deleteproportion", core.proportions.delete, expected));
        }
        if core.record_count < 2 {
            return Err(BadProperty::new("recordcount", core.record_count, "at least 2 accounts"));
        }
        let accounts = core.record_count;
        let initial = if total % accounts == 0 { total / accounts } else { 1 };
        let total_cash = initial * accounts;
        if total_cash != total {
            warnings.push(format!(
                "{key} {total} cannot be shared evenly by {accounts} accounts: each holds 1, {total_cash} in all",
                key = "totalcash"
            ));
        }
        core.data_integrity = false;
        Ok(EconomyConfig { core, total_cash, initial, warnings })
    }
}
