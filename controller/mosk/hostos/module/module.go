package module

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Limits of files that are read as a whole. The schema becomes a part of an object of the
// API, which etcd limits to 1.5 MiB for all modules together.
const (
	maxMetadata = 64 << 10  // bytes
	maxSchema   = 128 << 10 // bytes
	maxPlaybook = 16 << 20  // bytes
)

// Module is a module with its archive.
type Module struct {
	Metadata
	SchemaText []byte // JSON Schema of the values; nil: any values
	Archive    *Archive
	SHA256     string // SHA-256 of the archive, in hexadecimal

	schema *Schema
}

// Load reads a module from the bytes of its archive.
func Load(archive []byte) (*Module, error) {
	a, err := Read(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	text, err := a.ReadFile(MetadataFile, maxMetadata)
	if err != nil {
		return nil, err
	}
	m := &Module{Archive: a, SHA256: Sum(archive)}
	if m.Metadata, err = ParseMetadata(text); err != nil {
		return nil, err
	}
	if _, err := a.ReadFile(m.Playbook, maxPlaybook); err != nil {
		return nil, fmt.Errorf("playbook: %w", err)
	}
	if m.Schema != "" {
		if m.SchemaText, err = a.ReadFile(m.Schema, maxSchema); err != nil {
			return nil, fmt.Errorf("valuesJsonSchema: %w", err)
		}
		if m.schema, err = ParseSchema(m.SchemaText); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Schema, err)
		}
	}
	return m, nil
}

// Sum returns the SHA-256 of an archive in hexadecimal.
func Sum(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}

// Validate checks values as Schema.Validate does.
func (m *Module) Validate(values map[string]any) error {
	if m.schema == nil {
		return nil
	}
	return m.schema.Validate(values)
}

// SumError reports an archive with another SHA-256 than expected.
type SumError struct{ Got, Want string }

// Error returns the product's text, which operators search for.
func (e *SumError) Error() string {
	return fmt.Sprintf("hashes are not the same: got '%s' want '%s'", e.Got, e.Want)
}

// Expected is the entry of a module in a HostOSConfigurationModules.
type Expected struct{ Name, Version, SHA256 string }

// LoadExpected reads a module as Load does, and refuses one that is not the expected. The
// SHA-256 is checked before any byte is parsed.
func LoadExpected(archive []byte, want Expected) (*Module, error) {
	if got := Sum(archive); got != want.SHA256 {
		return nil, &SumError{Got: got, Want: want.SHA256}
	}
	m, err := Load(archive)
	if err != nil {
		return nil, err
	}
	if m.Name != want.Name || m.Version != want.Version {
		return nil, fmt.Errorf("the archive has module %s %s, not %s %s: correct name and version of %s or of the list", m.Name, m.Version, want.Name, want.Version, MetadataFile)
	}
	return m, nil
}
