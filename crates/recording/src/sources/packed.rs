//! Files that are packed by gzip or zstd.

use flate2::bufread::MultiGzDecoder;
use std::io::{BufRead, Read, Result};

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// By gzip.
    Gzip,
    /// By zstd.
    Zstd,
}

impl Packing {
    /// Of a file that begins with these bytes; `None` where it is not packed.
    pub fn of_head(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            _ => None,
        }
    }

    /// Unpacks a file.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn unpack<'a>(self, file: impl BufRead + Send + 'a) -> Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Packing::Gzip => Box::new(MultiGzDecoder::new(file)),
            Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn packed_files_are_unpacked() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"some text").unwrap();
        let zstd = zstd::encode_all(&b"some text"[..], 1).unwrap();
        for packed in [gzip.finish().unwrap(), zstd] {
            let mut text = String::new();
            Packing::of_head(&packed)
                .unwrap()
                .unpack(&packed[..])
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, "some text");
        }
        assert_eq!(Packing::of_head(b"*3\r\n"), None);
    }
}
