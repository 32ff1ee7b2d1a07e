package netboot

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pin/tftp/v3"
)

// Limits of TFTP. A block has to fit into an Ethernet frame.
const (
	maxTransfers = 64
	tftpBlock    = 1468 // bytes
	tftpTimeout  = 2 * time.Second
	tftpRetries  = 5
)

var (
	errNoFile = errors.New("there is no such file")
	errBusy   = errors.New("too many transfers: try again")
)

// newTFTP returns a read-only TFTP server for the network boot programs.
func (s *Server) newTFTP() *tftp.Server {
	turns := make(chan struct{}, maxTransfers)
	srv := tftp.NewServer(func(name string, to io.ReaderFrom) error {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		default:
			return errBusy
		}
		if s.cfg.Enter != nil {
			defer s.cfg.Enter()()
		}
		f, err := s.program(name)
		if err != nil {
			return err
		}
		if sized, ok := to.(tftp.OutgoingTransfer); ok {
			sized.SetSize(f.Size())
		}
		if _, err := to.ReadFrom(f); err != nil {
			return fmt.Errorf("TFTP: %w", err)
		}
		return nil
	}, nil)
	srv.SetBlockSize(tftpBlock)
	srv.SetTimeout(tftpTimeout)
	srv.SetRetries(tftpRetries)
	return srv
}

// program returns the network boot program for a file name that DHCP has given to a
// client. No other name is valid, and none is used as a path.
func (s *Server) program(name string) (*io.SectionReader, error) {
	token, file, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	b, err := s.cfg.Key.Verify(tftpPurpose, token)
	if err != nil || !slices.Contains([]string{LegacyPXE, UEFIPXE}, file) || s.access(b) != allowed {
		return nil, errNoFile
	}
	f := s.image.files[file]
	return io.NewSectionReader(f.r, 0, f.size), nil
}
