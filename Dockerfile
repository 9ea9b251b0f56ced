FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 VOLCANIC_ENV=production
WORKDIR /app
# What the assistant's commands run in.
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/*
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY manage.py ./
COPY volcanic volcanic
COPY trust trust
COPY a2a_server a2a_server
COPY a2a_client a2a_client
COPY templates templates
RUN useradd --create-home --uid 10001 volcanic \
    && mkdir -p /data/workspaces && chown -R volcanic:volcanic /data
USER volcanic
ENV VOLCANIC_VAR=/data WORKSPACES_DIR=/data/workspaces
VOLUME /data
EXPOSE 8000
CMD ["uvicorn", "volcanic.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--no-access-log", "--proxy-headers"]
