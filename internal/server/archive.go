package server

import (
	"bufio"
	"net/http"

	"tranca/internal/api"
	"tranca/internal/archive"
)

// readArchive sends a folder as it is read. What is left out of the archive
// because it is no file that can be read is told nobody: it is not there for
// who unpacks it either.
func readArchive(c *call) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", api.TypeTar)
	w := bufio.NewWriterSize(c.w, bufferSize)
	if _, err := archive.Pack(c.ctx(), files, c.query.text("path"), w); err != nil {
		return err
	}
	return w.Flush()
}

func writeArchive(c *call) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	sum, err := archive.Extract(c.ctx(), files, c.query.text("path"), c.body, archive.Options{})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, api.WriteAnswer{Written: sum.Bytes})
}
