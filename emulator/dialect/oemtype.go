package dialect

import (
	"fmt"
	"regexp"
	"slices"
)

// OEMType is the type of an object that the vendor adds to resources in their
// property Oem (DSP0266, "OEM property format and content"). The service serves a
// schema for it; without one, clients that check schemas reject the object.
type OEMType struct {
	Namespace  string // "AcmeSystem"
	Version    string // "v1_0_0"
	Name       string // name of the type in its namespace: "System"
	Properties []OEMProperty
}

// OEMProperty is a property of an OEMType.
type OEMProperty struct {
	Name        string // name of the property
	Type        EdmType
	Description string        // text of the schema
	Properties  []OEMProperty // properties of the object, if Type is EdmObject
}

// EdmType is a type of OData (CSDL 4.0, §4.4).
type EdmType string

// The types that vendors' properties have.
const (
	EdmString  EdmType = "Edm.String"             // text
	EdmBoolean EdmType = "Edm.Boolean"            // true or false
	EdmInt64   EdmType = "Edm.Int64"              // number without fraction
	EdmDecimal EdmType = "Edm.Decimal"            // number
	EdmInstant EdmType = "Edm.DateTimeOffset"     // date and time
	EdmStrings EdmType = "Collection(Edm.String)" // list of texts
	EdmLink    EdmType = "Resource.Item"          // to another resource
	EdmObject  EdmType = "object"                 // object of a type with the name of the property
)

var edmTypes = []EdmType{EdmString, EdmBoolean, EdmInt64, EdmDecimal, EdmInstant, EdmStrings, EdmLink, EdmObject}

var (
	oemName    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	oemVersion = regexp.MustCompile(`^v\d+_\d+_\d+$`)
)

// wrong returns the first mistake in a type.
func (t *OEMType) wrong() error {
	switch {
	case !oemName.MatchString(t.Namespace) || !oemName.MatchString(t.Name):
		return fmt.Errorf("%q.%q: Namespace and Name must be letters and digits", t.Namespace, t.Name)
	case !oemVersion.MatchString(t.Version):
		return fmt.Errorf("%s: Version: must have the form v1_0_0", t.Namespace)
	}
	return wrongProperties(t.Namespace, t.Properties)
}

func wrongProperties(of string, all []OEMProperty) error {
	for _, p := range all {
		switch {
		case !oemName.MatchString(p.Name) || !slices.Contains(edmTypes, p.Type):
			return fmt.Errorf("%s: Properties: %q: must have a name of letters and digits and a type of OData", of, p.Name)
		case (p.Type == EdmObject) != (len(p.Properties) > 0):
			return fmt.Errorf("%s: Properties: %q: an object must have Properties, and nothing else may", of, p.Name)
		}
		if err := wrongProperties(of, p.Properties); err != nil {
			return err
		}
	}
	return nil
}
