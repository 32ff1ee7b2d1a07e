package storage

import (
	"crypto/subtle"
	"encoding/binary"
)

// RAID 6 has two syndromes per row over the field GF(2^8) with the polynomial
// x^8+x^4+x^3+x^2+1 and the generator 2: P, the sum of the data, and Q, the sum
// of the data times the generator to the power of the column (H. P. Anvin, "The
// mathematics of RAID-6", §2). Any two of data, P and Q can be computed from
// the rest.

const polynomial = 0x11d

// powers holds the generator's powers, twice, so that a sum of two logarithms
// needs no modulo; logs is its inverse.
var powers, logs = func() (exp [510]byte, log [256]byte) {
	x := 1
	for i := range 255 {
		exp[i], exp[i+255], log[x] = byte(x), byte(x), byte(i)
		if x <<= 1; x > 255 {
			x ^= polynomial
		}
	}
	return exp, log
}()

// product multiplies in the field.
func product(a, b byte) byte {
	if a == 0 || b == 0 {
		return 0
	}
	return powers[int(logs[a])+int(logs[b])]
}

// inverse returns the multiplicative inverse of a, which is not 0.
func inverse(a byte) byte { return powers[255-int(logs[a])] }

// add adds src to dst.
func add(dst, src []byte) { subtle.XORBytes(dst, dst, src) }

// scale multiplies all of p by c.
func scale(p []byte, c byte) {
	var table [256]byte
	for i := range table {
		table[i] = product(byte(i), c)
	}
	for i, x := range p {
		p[i] = table[x]
	}
}

// double multiplies all of p by the generator, eight bytes at a time.
func double(p []byte) {
	const high, low = 0x8080808080808080, 0xfefefefefefefefe
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p)
		over := x & high >> 7
		binary.LittleEndian.PutUint64(p, x<<1&low^over*(polynomial&0xff))
	}
	for i, x := range p {
		p[i] = x<<1 ^ x>>7*(polynomial&0xff)
	}
}

// syndromes computes P and Q of a row's data, all of one length; a nil q is not
// computed.
func syndromes(data [][]byte, p, q []byte) {
	clear(p)
	clear(q)
	for i := len(data) - 1; i >= 0; i-- {
		add(p, data[i])
		if q != nil {
			double(q)
			add(q, data[i])
		}
	}
}

// solveP computes one missing column of data from P.
func solveP(data [][]byte, x int, p []byte) {
	copy(data[x], p)
	for i, d := range data {
		if i != x {
			add(data[x], d)
		}
	}
}

// solve computes the two missing columns of data x < y. On entry their slices
// are arbitrary; p and q hold the row's syndromes, and restP and restQ have the
// same length; all four are overwritten.
func solve(data [][]byte, x, y int, p, q, restP, restQ []byte) {
	clear(data[x])
	clear(data[y])
	syndromes(data, restP, restQ)
	add(p, restP) // = Dx + Dy
	add(q, restQ) // = g^x Dx + g^y Dy
	// Dy = (q + g^x p) / (g^x + g^y)
	copy(data[y], p)
	scale(data[y], powers[x])
	add(data[y], q)
	scale(data[y], inverse(powers[x]^powers[y]))
	copy(data[x], p)
	add(data[x], data[y])
}

// solveQ computes one missing column of data when P is missing too; q and rest
// are overwritten.
func solveQ(data [][]byte, x int, q, rest []byte) {
	clear(data[x])
	clear(rest)
	for i := len(data) - 1; i >= 0; i-- {
		double(rest)
		add(rest, data[i])
	}
	add(q, rest) // = g^x Dx
	copy(data[x], q)
	scale(data[x], inverse(powers[x]))
}
