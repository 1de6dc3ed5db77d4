"""Label rows over HTTP: a model file behind FastAPI.

    pip install "sketchmeans[files]" fastapi uvicorn
    MODEL=segments.skm uvicorn --app-dir examples/serve app:app

    curl localhost:8000/predict -H 'content-type: application/json' \
        -d '{"rows": [{"age": 31, "plan": "free", "orders": 12}]}'

A model file holds no code, so that the service can load one that it does not trust.
"""

from __future__ import annotations

import os
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import sketchmeans
from sketchmeans.diagnostics import model_card, segment_names


class Rows(BaseModel):
    """Rows by column; null stands for a missing value."""

    rows: list[dict[str, str | float | bool | None]] = Field(
        min_length=1, max_length=10_000
    )


class Labels(BaseModel):
    """The segment of each row, −1 and null for a row that is left out."""

    labels: list[int]
    segments: list[str | None]


def make_app(model: Any) -> FastAPI:
    """Return the service of a fitted `TableClusterer`."""
    app = FastAPI(title="Segments")
    names = segment_names(model)

    @app.post("/predict")
    def predict(given: Rows) -> Labels:
        try:
            labels = model.predict(given.rows).tolist()
        except ValueError as error:  # it names the row and the column
            raise HTTPException(422, str(error)) from error
        segments = [names[label] if label >= 0 else None for label in labels]
        return Labels(labels=labels, segments=segments)

    @app.get("/card")
    def card() -> str:
        return model_card(model)

    return app


if "MODEL" in os.environ:
    app = make_app(sketchmeans.load(os.environ["MODEL"]))
