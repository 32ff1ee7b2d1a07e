package main

import (
	"bufio"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/cmd/usage"
)

// access holds the flags with which a command reaches a BMC.
type access struct {
	username, password, passwordFile string
	passwordStdin, insecure          bool
	ca                               string
}

func (a *access) flags(f *pflag.FlagSet, what string) {
	f.StringVar(&a.username, "username", "", "user of the BMC that may "+what)
	f.StringVar(&a.passwordFile, "password-file", "", "file whose first line is the password")
	f.BoolVar(&a.passwordStdin, "password-stdin", false, "read the password from standard input")
	f.BoolVar(&a.insecure, "insecure", false, "accept any certificate")
	f.StringVar(&a.ca, "ca", "", "file with the authorities that sign the BMC's certificate")
}

// credentials takes the password from where it is.
func (a *access) credentials(stdin io.Reader) error {
	from := stdin
	switch {
	case a.passwordFile != "":
		f, err := os.Open(a.passwordFile)
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
	case !a.passwordStdin:
		return nil
	}
	line, err := bufio.NewReader(io.LimitReader(from, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	a.password = strings.TrimRight(line, "\r\n")
	return nil
}

// authorities returns the pool of --ca, or nil.
func (a *access) authorities() (*x509.CertPool, error) {
	if a.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(a.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usage.New(fmt.Errorf("--ca %s: holds no certificate", a.ca))
	}
	return pool, nil
}
