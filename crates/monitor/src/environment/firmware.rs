//! Facts from firmware: board, BIOS, cloud instance, and memory modules from the SMBIOS table where it may be read.

use super::facts::EnvironmentFacts;
use super::values::{tally, text};
use std::path::Path;

pub(super) fn read(sys: &Path, all: &mut EnvironmentFacts) {
    let id = sys.join("class/dmi/id");
    for name in [
        "bios_vendor",
        "bios_version",
        "bios_date",
        "bios_release",
        "sys_vendor",
        "product_name",
        "product_version",
        "board_vendor",
        "board_name",
    ] {
        all.fact("firmware", name, text(id.join(name)));
    }
    all.fact("virtualisation", "hypervisor_type", text(sys.join("hypervisor/type")));
    let (vendor, product) = (text(id.join("sys_vendor")), text(id.join("product_name")));
    let cloud = match vendor.as_deref().unwrap_or_default() {
        "Amazon EC2" => Some("aws"),
        "Google" => Some("gcp"),
        "Microsoft Corporation" if product.as_deref() == Some("Virtual Machine") => Some("azure or hyper-v"),
        vendor if vendor.starts_with("Alibaba") => Some("alicloud"),
        _ => None,
    };
    all.fact("virtualisation", "cloud", cloud.map(str::to_owned));
    // Only Amazon writes the type of an instance there.
    all.fact("virtualisation", "instance_type", product.filter(|_| cloud == Some("aws")));
    if let Ok(table) = std::fs::read(sys.join("firmware/dmi/tables/DMI")) {
        modules(&table, all);
    }
}

/// Memory modules: structures of type 17 of the SMBIOS table.
fn modules(table: &[u8], all: &mut EnvironmentFacts) {
    let mut found = Vec::new();
    let mut slots = 0usize;
    let mut at = 0;
    while let Some(&[kind, length]) = table.get(at..at + 2) {
        let length = usize::from(length);
        let Some(own) = table.get(at..at + length).filter(|_| length >= 4) else { break };
        if kind == 17 && length >= 0x15 {
            slots += 1;
            found.extend(module(own));
        }
        // Texts follow, each ended by a zero; two zeros end the structure.
        let Some(end) = table[at + length..].windows(2).position(|pair| pair == [0, 0]) else { break };
        at += length + end + 2;
    }
    if slots > 0 {
        all.fact("memory", "module_slots", Some(slots.to_string()));
        all.fact("memory", "module_count", Some(found.len().to_string()));
        all.fact("memory", "modules", tally(found.into_iter()));
    }
}

/// `32768 MiB 4400 MT/s`; none for an empty slot.
fn module(own: &[u8]) -> Option<String> {
    let word = |at: usize| Some(u16::from_le_bytes(own.get(at..at + 2)?.try_into().ok()?));
    let mib = match word(0x0c)? {
        0 | 0xffff => return None,
        0x7fff => u32::from_le_bytes(own.get(0x1c..0x20)?.try_into().ok()?),
        kib if kib & 0x8000 != 0 => u32::from(kib & 0x7fff) / 1024,
        mib => u32::from(mib),
    };
    let speed = word(0x20).filter(|n| *n > 0).or(word(0x15).filter(|n| *n > 0));
    Some(format!("{mib} MiB{}", speed.map_or(String::new(), |n| format!(" {n} MT/s"))))
}
