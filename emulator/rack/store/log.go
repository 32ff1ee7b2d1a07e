package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The write-ahead log takes a batch of saves with one write, where a commit of bbolt
// takes many. When it has grown, it is flushed to bbolt and emptied. Its content is
// part of the store: Open reads it first.
//
// The file begins with a header: logMagic, the number of the first batch that the log
// can hold, and a checksum of both. Batches follow, each after its length and its
// checksum. A log of an earlier release has no header.

const (
	logFile  = "state.log"
	logMagic = "MLABLOG\x02"
	logHead  = len(logMagic) + 8 + 4 // bytes of the header
	rowHead  = 8                     // bytes before a batch: its length and its checksum
	maxLog   = 4 << 20               // bytes; a larger log is flushed
	maxRow   = 1 << 30               // bytes of a batch; a larger length is no batch of this log
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// logStorage is where the log is: a file.
type logStorage interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// writeAheadLog is the open log.
type writeAheadLog struct {
	f      logStorage
	fsync  bool
	size   int64
	batch  uint64 // number of the last batch; the numbers continue after the log was emptied
	writes int    // since the log was opened
	buf    []byte
	mark   *mark // nil: the disk had no space for it
}

// openLog opens a log, and empties it but for its header. With create it makes the file,
// also where a log without a header is: a rename replaces that at once.
func openLog(dir string, fsync bool, batch uint64, create bool) (*writeAheadLog, error) {
	path := filepath.Join(dir, logFile)
	if create {
		if err := os.WriteFile(path+".part", logHeader(batch), 0o600); err != nil {
			return nil, err
		}
		if err := os.Rename(path+".part", path); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	j := &writeAheadLog{f: f, fsync: fsync, batch: batch}
	err = j.empty()
	if err == nil && fsync {
		err = errors.Join(f.Sync(), syncDir(dir))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// logHeader returns the header of a log whose batches follow batch.
func logHeader(batch uint64) []byte {
	head := binary.LittleEndian.AppendUint64([]byte(logMagic), batch+1)
	return binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
}

// add appends a batch. When it fails, the log is as before.
func (j *writeAheadLog) add(at time.Time, puts []rawPut) error {
	b := append(j.buf[:0], 0, 0, 0, 0, 0, 0, 0, 0)
	b = appendBatch(b, j.batch+1, at, puts)
	j.buf = b
	if cap(j.buf) > maxLog {
		j.buf = nil
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-8))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	_, err := j.f.WriteAt(b, j.size)
	if err == nil && j.fsync {
		err = j.f.Sync()
	}
	if err != nil {
		return errors.Join(err, j.f.Truncate(j.size))
	}
	j.size += int64(len(b))
	j.batch++
	j.writes++
	j.mark.set(j.batch)
	return nil
}

// close closes the files.
func (j *writeAheadLog) close() error { return errors.Join(j.f.Close(), j.mark.close()) }

// empty removes all batches, which are in bbolt. The header comes first: a log whose
// process is killed in between still begins with a header, and bbolt has its batches.
func (j *writeAheadLog) empty() error {
	if _, err := j.f.WriteAt(logHeader(j.batch), 0); err != nil {
		return err
	}
	if err := j.f.Truncate(int64(logHead)); err != nil {
		return err
	}
	j.size = int64(logHead)
	return nil
}

// loggedBatch is a batch that was read from a log.
type loggedBatch struct {
	number uint64
	at     time.Time
	puts   []rawPut
}

// logContent is the content of a log.
type logContent struct {
	first   uint64 // number of the first batch that the log can hold; 0 in a log of an earlier release
	batches []loggedBatch
	end     int64 // offset at which the last complete batch ends
	torn    int64 // bytes of a batch after that, which was cut when its process was killed
}

// readLog reads the log in a directory. found is false when there is no file. The error is
// a *DamageError for a file that no kill leaves: every batch but the last must be complete.
func readLog(dir string) (c logContent, found bool, err error) {
	path := filepath.Join(dir, logFile)
	all, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err != nil {
		return c, true, unreadable(path, err)
	}
	c, err = parseLog(path, all)
	return c, true, err
}

func parseLog(path string, all []byte) (c logContent, err error) {
	damaged := func(at int, format string, args ...any) error {
		fix := "restore a snapshot (labctl snapshot restore FILE); or move the file away and start with labctl up --accept-loss, and the lab goes on without the changes in it"
		if at > 0 {
			fix += fmt.Sprintf("; or cut it (truncate -s %d %s) and start in the same way, and the lab goes on without the changes from there on", at, path)
		}
		return &DamageError{Path: path, Offset: int64(at), Detail: fmt.Sprintf(format, args...), Fix: fix}
	}
	at := 0
	if bytes.HasPrefix(all, []byte(logMagic)) {
		sum := 0
		if len(all) >= logHead {
			sum = logHead - 4
		}
		if sum == 0 || crc32.Checksum(all[:sum], castagnoli) != binary.LittleEndian.Uint32(all[sum:]) {
			return c, damaged(0, "the header is not complete, or its checksum is wrong")
		}
		c.first, at = binary.LittleEndian.Uint64(all[len(logMagic):]), logHead
	}
	for at < len(all) {
		row, ok := rowAt(all[at:])
		if !ok {
			if lost, why := damageAt(all[at:]); lost {
				return c, damaged(at, "%s", why)
			}
			c.torn = int64(len(all) - at)
			break
		}
		b := loggedBatch{}
		if b.number, b.at, b.puts, err = parseBatch(row); err != nil {
			return c, err
		}
		if n := len(c.batches); n > 0 && b.number != c.batches[n-1].number+1 {
			return c, damaged(at, "batch %d follows batch %d", b.number, c.batches[n-1].number)
		}
		c.batches = append(c.batches, b)
		at += rowHead + len(row)
	}
	c.end = int64(at)
	return c, nil
}

// rowAt returns the batch at the beginning of b, if it is complete.
func rowAt(b []byte) ([]byte, bool) {
	if len(b) < rowHead {
		return nil, false
	}
	n, sum := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if n == 0 || n > maxRow || uint64(len(b)-rowHead) < uint64(n) {
		return nil, false
	}
	row := b[rowHead : rowHead+n]
	return row, crc32.Checksum(row, castagnoli) == sum
}

// damageAt reports whether the bytes that follow the last readable batch are damaged, and
// how. Otherwise they are the beginning of a batch whose write did not end: a prefix of
// it, or after a power cut blocks of zeros in place of those that were not written.
func damageAt(rest []byte) (damaged bool, why string) {
	for i := 1; i+rowHead < len(rest); i++ {
		if row, ok := rowAt(rest[i:]); ok {
			if _, _, _, err := parseBatch(row); err == nil {
				return true, fmt.Sprintf("a batch is damaged, and %d bytes later a complete one follows", i)
			}
		}
	}
	if len(rest) < rowHead {
		return false, ""
	}
	n, sum := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:])
	const block = 512 // bytes: the smallest that a disk writes
	switch {
	case len(bytes.TrimRight(rest, "\x00"))+block <= len(rest), len(bytes.Trim(rest, "\x00")) == 0:
		return false, ""
	case crc32.Checksum(rest[rowHead:], castagnoli) == sum:
		return true, "the length of the last batch is wrong"
	case n > maxRow:
		return true, "no batch begins here"
	case uint64(len(rest)-rowHead) >= uint64(n):
		return true, "the last batch is complete, but its checksum is wrong"
	}
	return false, ""
}

// appendBatch encodes a batch: its number and time, then kind, key and value of each
// put, each text after its length. A plus before the kind means that the value is
// appended to the stored one.
func appendBatch(b []byte, number uint64, at time.Time, puts []rawPut) []byte {
	when, err := at.MarshalBinary()
	if err != nil {
		panic(err) // fails for zones of fractional minutes only; the lab's time is UTC
	}
	b = appendText(binary.AppendUvarint(b, number), when)
	for _, p := range puts {
		n := len(p.kind)
		if p.more {
			b = append(binary.AppendUvarint(b, uint64(n+1)), plus)
		} else {
			b = binary.AppendUvarint(b, uint64(n))
		}
		b = appendText(appendText(append(b, p.kind...), p.key), p.value)
	}
	return b
}

// plus marks the kind of a value that is appended.
const plus = '+'

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// errBatch is returned for a batch with a correct checksum that cannot be parsed:
// another version of this program wrote it.
var errBatch = errors.New("a batch of the log is of a form that this build does not know: " +
	"start and stop the lab with the build that was killed with it, then there is no log")

func parseBatch(b []byte) (number uint64, at time.Time, puts []rawPut, err error) {
	number, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, at, nil, errBatch
	}
	b = b[size:]
	text := func() []byte {
		n, size := binary.Uvarint(b)
		if size <= 0 || uint64(len(b)-size) < n {
			err = errBatch
			return nil
		}
		p := b[size : size+int(n)]
		b = b[size+int(n):]
		return p
	}
	when := text()
	if err == nil {
		err = at.UnmarshalBinary(when)
	}
	for err == nil && len(b) > 0 {
		kind, more := strings.CutPrefix(string(text()), string(plus))
		puts = append(puts, rawPut{kind: Kind(kind), key: string(text()), value: text(), more: more})
	}
	if err != nil {
		return 0, at, nil, fmt.Errorf("%w: %w", errBatch, err)
	}
	return number, at, puts, nil
}
