package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// shownLink is the output of labctl view.
type shownLink struct {
	View string `json:"view"`
}

func newView(o *options) *cobra.Command {
	rotate, svg, colour := false, false, view.Schemes[0].Name
	c := &cobra.Command{
		Use: "view [HOST | FILE]", Args: usage.Arguments("[HOST | FILE]"),
		Short: "Show the link of the lab's page, or of a recording: its racks in a browser",
		Long: `Show the link of the lab's page. It shows the racks with a tile for each server, and
a page for each server with its parts, journal and console, live. The link has the
lab's token; whoever has it can do what labctl can. The page is on loopback only.

With --rotate the lab gets a new token, and pages that are open end. With --svg the
racks are printed as an image, for reports.

With a file that labctl up --recording has written, labctl serves the page of the
recording until Ctrl-C. A slider moves through its time. It needs no lab.`,
		Example: `  labctl view
  labctl view node-0                # the page of a server
  labctl view --rotate              # a new token
  labctl view --svg --colour health > racks.svg
  labctl view ./lab.json.gz         # a recording`,
		ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && isRecording(args[0]) {
				return replay(c.Context(), args[0], c.OutOrStdout())
			}
			lab := control.NewClient(o.state)
			st, err := lab.Status(c.Context())
			if err != nil {
				return err
			}
			if rotate {
				if _, err := view.Rotate(o.state); err != nil {
					return err
				}
				if st, err = lab.Status(c.Context()); err != nil {
					return err
				}
			}
			if st.View == "" {
				return errors.New("this lab has no page: labctl down and labctl up give it one")
			}
			if svg {
				return printSVG(c.Context(), st.View, colour, c.OutOrStdout())
			}
			link := shownLink{View: st.View}
			if len(args) > 0 {
				h, err := lab.Host(c.Context(), args[0])
				if err != nil {
					return err
				}
				link.View += pageOf(h)
			}
			if o.output.text() {
				_, err := fmt.Fprintln(c.OutOrStdout(), link.View)
				return err
			}
			return o.output.print(c.OutOrStdout(), link, nil)
		},
	}
	c.Flags().BoolVar(&rotate, "rotate", false, "make a new token first")
	c.Flags().BoolVar(&svg, "svg", false, "print the racks as an SVG image")
	var names []string
	for _, s := range view.Schemes {
		names = append(names, s.Name)
	}
	choiceFlag(c, &colour, "colour", names, "what colours the tiles of --svg: "+strings.Join(names, ", "))
	c.MarkFlagsMutuallyExclusive("rotate", "svg")
	return c
}

// pageOf returns the part of a link that names the page of a host.
func pageOf(h control.Detail) string {
	rack := h.Rack
	if rack == "" {
		rack = "-"
	}
	return "#/rack/" + url.PathEscape(rack) + "/" + url.PathEscape(h.Name)
}

// isRecording reports whether an argument is a file, and not the name of a host.
func isRecording(arg string) bool {
	st, err := os.Stat(arg)
	return err == nil && !st.IsDir() || strings.ContainsRune(arg, filepath.Separator)
}

// replay serves the page of a recording until ctx ends.
func replay(ctx context.Context, file string, out io.Writer) error {
	p, err := view.NewReplay(file, nil)
	if err != nil {
		return err
	}
	if err := needLoopback(); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("the page of the recording: %w", err)
	}
	fmt.Fprintf(out, "%s\nCtrl-C ends the page.\n", p.Link(l.Addr().String()))
	return p.Serve(ctx, l)
}

// svgTimeout bounds how long the lab may take to draw its racks.
const svgTimeout = 30 * time.Second

// printSVG prints the racks as an SVG image.
func printSVG(ctx context.Context, link, colour string, out io.Writer) error {
	at, err := url.Parse(link)
	if err != nil {
		return fmt.Errorf("the link of the page: %w", err)
	}
	token := at.Query().Get("token")
	at.Path, at.RawQuery = "/rack.svg", url.Values{"colour": {colour}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, svgTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("the lab's page answers %s: %s", resp.Status, strings.TrimSpace(string(b)))
	}
	_, err = io.Copy(out, resp.Body)
	return err
}
