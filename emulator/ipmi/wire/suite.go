package wire

// Authentication is an RAKP authentication algorithm (table 13-17).
type Authentication byte

// The authentication algorithms.
const (
	RAKPNone       Authentication = 0x00
	RAKPHMACSHA1   Authentication = 0x01
	RAKPHMACMD5    Authentication = 0x02
	RAKPHMACSHA256 Authentication = 0x03
)

// Integrity is a packet integrity algorithm (table 13-18).
type Integrity byte

// The integrity algorithms.
const (
	IntegrityNone  Integrity = 0x00
	HMACSHA1x96    Integrity = 0x01
	HMACMD5x128    Integrity = 0x02
	MD5x128        Integrity = 0x03
	HMACSHA256x128 Integrity = 0x04
)

// Confidentiality is an encryption algorithm (table 13-19).
type Confidentiality byte

// The confidentiality algorithms. RC4's (02h, 03h) are offered by no vendor's
// BMC, and are not implemented.
const (
	ConfidentialityNone Confidentiality = 0x00
	AESCBC128           Confidentiality = 0x01
)

// Suite is a triple of algorithms.
type Suite struct {
	Authentication  Authentication
	Integrity       Integrity
	Confidentiality Confidentiality
}

// Suites maps cipher suite IDs to algorithms (table 22-20), without RC4's.
var Suites = map[byte]Suite{
	0:  {RAKPNone, IntegrityNone, ConfidentialityNone},
	1:  {RAKPHMACSHA1, IntegrityNone, ConfidentialityNone},
	2:  {RAKPHMACSHA1, HMACSHA1x96, ConfidentialityNone},
	3:  {RAKPHMACSHA1, HMACSHA1x96, AESCBC128},
	6:  {RAKPHMACMD5, IntegrityNone, ConfidentialityNone},
	7:  {RAKPHMACMD5, HMACMD5x128, ConfidentialityNone},
	8:  {RAKPHMACMD5, HMACMD5x128, AESCBC128},
	11: {RAKPHMACMD5, MD5x128, ConfidentialityNone},
	12: {RAKPHMACMD5, MD5x128, AESCBC128},
	15: {RAKPHMACSHA256, IntegrityNone, ConfidentialityNone},
	16: {RAKPHMACSHA256, HMACSHA256x128, ConfidentialityNone},
	17: {RAKPHMACSHA256, HMACSHA256x128, AESCBC128},
}
